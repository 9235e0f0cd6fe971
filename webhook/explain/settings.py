"""What `explain` runs with: its options, and their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from webhook.cluster_options import (
    CLUSTER_OPT_IN_ALL,
    CONTEXT,
    HEADROOM,
    KUBECONFIG,
    LONGHORN_NAMESPACE,
    MANIFESTS,
    MODE,
    SHORTLIST,
    WATCH_PODS,
    option,
    two_clusters,
)
from webhook.component_base.errors import BadSettings
from webhook.component_base.options import NAMESPACE, OneOf

if TYPE_CHECKING:
    from webhook.core.opt_in import OptInAll

EXPLAIN: Final = (
    option(
        "--filename",
        "-f",
        metavar="FILE",
        type=click.Path(readable=False),
        help="YAML or JSON file with one or several objects to explain: Pod, VirtualMachine, VirtualMachineInstance or "
        "AdmissionReview. - reads standard input.",
    ),
    option(
        "--namespace",
        "-n",
        type=NAMESPACE,
        help="Namespace of the names, and of objects in FILE that state none. Without this option: the namespace of "
        "the kubeconfig's context, else default. The program looks up Longhorn's volumes in Longhorn's own namespace.",
    ),
    KUBECONFIG,
    CONTEXT,
    MANIFESTS,
    option(
        "--output",
        "-o",
        default="text",
        type=OneOf("text", "yaml", "json"),
        help="Output format.",
    ),
    MODE,
    CLUSTER_OPT_IN_ALL,
    WATCH_PODS,
    HEADROOM,
    SHORTLIST,
    LONGHORN_NAMESPACE,
)


@dataclass(frozen=True, kw_only=True)  # no Struct: help and completion do without msgspec
class ExplainSettings:
    """What `explain` runs with: `names` of objects in the cluster, or else a file of them.

    Raises:
        BadSettings: both or neither of these, or two clusters at once.
    """

    names: tuple[str, ...]
    filename: str | None
    manifests: Path | None
    kubeconfig: Path | None
    context: str | None
    namespace: str | None
    output: Literal["text", "yaml", "json"]
    mode: Literal["required", "preferred", "off"]
    opt_in_all: OptInAll | None
    watch_pods: Literal["all", "virt-launcher", "none"]
    headroom: Mapping[str, int]
    shortlist: Literal["auto", "off"]
    longhorn_namespace: str

    @property
    def guard(self) -> Mapping[str, int] | None:
        """The headroom of nodes; None if a server with these settings ignores the free resources of nodes."""
        return self.headroom if self.watch_pods == "all" else None

    def __post_init__(self) -> None:
        """Report all contradictions at once."""
        problems = []
        if not self.names and not self.filename:
            problems.append("nothing to explain: expected TYPE/NAME, such as vm/db01, or --filename FILE")
        if self.names and self.filename:
            problems.append(
                f"got {' '.join(self.names)} and --filename {self.filename}: expected names or a file of objects, not "
                "both; a file of a whole cluster is for --manifests"
            )
        problems += two_clusters(self.manifests, self.kubeconfig, self.context)
        if problems:
            raise BadSettings(*problems)
