"""What `status` runs with: its options, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.cluster_options import (
    CLUSTER_OPT_IN_ALL,
    CONTEXT,
    KUBECONFIG,
    LONGHORN_NAMESPACE,
    NO_HEADERS,
    SELECTOR,
    manifests_option,
    option,
    two_clusters,
)
from webhook.component_base.errors import BadSettings
from webhook.component_base.options import NAMESPACE, OneOf

if TYPE_CHECKING:
    from webhook.core.opt_in import OptInAll
    from webhook.core.scheduler.matching.label_selector import Selector

STATUS: Final = (
    option(
        "--namespace",
        "-n",
        type=NAMESPACE,
        help="Namespace of the VMs. Without this option: the namespace of the kubeconfig's context, else default.",
    ),
    option("--all-namespaces", "-A", is_flag=True, help="Show the VMs of all namespaces."),
    SELECTOR,
    option(
        "--apart",
        is_flag=True,
        help="Show only VMs that are apart from a share-manager, or stuck. The summary and the exit code still count "
        "all VMs.",
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
        type=OneOf("table", "wide", "json", "yaml", "name"),
        help="Output format: table, wide (the table with more columns), json, yaml or name "
        "(virtualmachineinstance.kubevirt.io/NAME).",
    ),
    NO_HEADERS,
    KUBECONFIG,
    CONTEXT,
    manifests_option("-f"),
    LONGHORN_NAMESPACE,
    CLUSTER_OPT_IN_ALL,
)


@dataclass(frozen=True, kw_only=True)  # no Struct: help and completion do without msgspec
class StatusSettings:
    """What `status` runs with: `names` of VMs, none for all of them.

    Raises:
        BadSettings: two options that exclude each other, or a word that is not a name.
    """

    names: tuple[str, ...]
    namespace: str | None
    all_namespaces: bool
    selector: Selector | None
    apart: bool
    plan: bool
    output: str
    no_headers: bool
    kubeconfig: Path | None
    context: str | None
    manifests: Path | None
    longhorn_namespace: str
    opt_in_all: OptInAll | None

    def __post_init__(self) -> None:
        """Report all contradictions at once."""
        both = (
            ("--all-namespaces and --namespace", self.all_namespaces and self.namespace),
            ("--selector and names of VMs", self.selector and self.names),
            ("--plan and --output", self.plan and self.output != "table"),
        )
        problems = [f"got {flags}: expected one of the two" for flags, given in both if given]
        problems += two_clusters(self.manifests, self.kubeconfig, self.context)
        if problems:
            raise BadSettings(*problems)
