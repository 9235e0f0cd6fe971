"""What `status` runs with: its options, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from webhook.cluster_options import CONTEXT, KUBECONFIG, LONGHORN_NAMESPACE, MANIFESTS, option, two_clusters
from webhook.component_base.errors import BadSettings
from webhook.component_base.options import NAMESPACE, OneOf

STATUS: Final = (
    option(
        "--namespace",
        "-n",
        type=NAMESPACE,
        help="Namespace of the VMs. Without this option: the namespace of the kubeconfig's context, else default.",
    ),
    option("--all-namespaces", "-A", is_flag=True, help="Show the VMs of all namespaces."),
    option(
        "--apart",
        is_flag=True,
        help="Show only VMs that are apart from a share-manager, or stuck. The summary and the exit code still count "
        "all VMs.",
    ),
    option(
        "--watch",
        "-w",
        is_flag=True,
        help="Go on until interrupted. In a terminal the program keeps the table up to date; elsewhere it prints a "
        "line for each change.",
    ),
    option(
        "--plan",
        is_flag=True,
        help="Print the objects that would bring each VM that is apart together with its share-manager again, for "
        "kubectl create -f -. The program itself creates nothing.",
    ),
    option(
        "--output",
        "-o",
        default="table",
        type=OneOf("table", "wide", "json", "yaml"),
        help="Output format.",
    ),
    KUBECONFIG,
    CONTEXT,
    MANIFESTS,
    LONGHORN_NAMESPACE,
)


@dataclass(frozen=True, kw_only=True)  # no Struct: help and completion do without msgspec
class StatusSettings:
    """What `status` runs with: `names` of VMs, none for all of them.

    Raises:
        BadSettings: two of these that can't be had at once, or a name that is none.
    """

    names: tuple[str, ...]
    namespace: str | None
    all_namespaces: bool
    apart: bool
    watch: bool
    plan: bool
    output: Literal["table", "wide", "json", "yaml"]
    kubeconfig: Path | None
    context: str | None
    manifests: Path | None
    longhorn_namespace: str

    def __post_init__(self) -> None:
        """Say every contradiction at once."""
        both = (
            ("--all-namespaces and --namespace", self.all_namespaces and self.namespace),
            ("--all-namespaces and names of VMs", self.all_namespaces and self.names),
            ("--plan and --watch", self.plan and self.watch),
            ("--plan and --output", self.plan and self.output != "table"),
            ("--watch and --manifests", self.watch and self.manifests),
        )
        problems = [f"got {flags}: expected one of the two" for flags, given in both if given]
        problems += two_clusters(self.manifests, self.kubeconfig, self.context)
        if problems:
            raise BadSettings(*problems)
