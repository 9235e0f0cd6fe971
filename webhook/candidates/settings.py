"""What `candidates` runs with: its options, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

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

CANDIDATES: Final = (
    option(
        "--namespace",
        "-n",
        type=NAMESPACE,
        help="Namespace of the VMs. Without this option: the namespace of the kubeconfig's context, else default.",
    ),
    option("--all-namespaces", "-A", is_flag=True, help="Show the VMs of all namespaces."),
    SELECTOR,
    option(
        "--output",
        "-o",
        default="table",
        type=OneOf("table", "commands", "json", "yaml", "name"),
        help="Output format: table, json, yaml, name (virtualmachineinstance.kubevirt.io/NAME, for a stopped VM "
        "virtualmachine.kubevirt.io/NAME) or commands. commands has, for each VM that has not opted in, the line that "
        "opts the VM in; for one that somebody has opted out, a comment.",
    ),
    NO_HEADERS,
    KUBECONFIG,
    CONTEXT,
    manifests_option("-f"),
    LONGHORN_NAMESPACE,
    CLUSTER_OPT_IN_ALL,
)


@dataclass(frozen=True, kw_only=True)  # no Struct: help and completion do without msgspec
class CandidatesSettings:
    """What `candidates` runs with: `names` of VMs, none for all of them.

    Raises:
        BadSettings: two of these that can't be had at once.
    """

    names: tuple[str, ...]
    namespace: str | None
    all_namespaces: bool
    selector: Selector | None
    output: Literal["table", "commands", "json", "yaml", "name"]
    no_headers: bool
    kubeconfig: Path | None
    context: str | None
    manifests: Path | None
    longhorn_namespace: str
    opt_in_all: OptInAll | None

    def __post_init__(self) -> None:
        """Say every contradiction at once."""
        problems = two_clusters(self.manifests, self.kubeconfig, self.context)
        if self.all_namespaces and self.namespace:
            problems.insert(0, "got --all-namespaces and --namespace: expected one of the two")
        if self.selector and self.names:
            problems.append("got --selector and names of VMs: expected one of the two")
        if problems:
            raise BadSettings(*problems)
