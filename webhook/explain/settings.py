"""What `explain` runs with: its options, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from webhook.cluster_options import DecisionSettings, read_opt_in_all_option, two_clusters
from webhook.component_base.errors import BadSettings
from webhook.component_base.options import NAMESPACE, OneOf, option

if TYPE_CHECKING:
    from webhook.core.opt_in import OptInAll


@dataclass(frozen=True, kw_only=True)
class ExplainSettings(DecisionSettings):
    """What `explain` runs with: `names` of objects in the cluster, or else a file of them.

    Raises:
        BadSettings: both or neither of these, or two clusters at once.
    """

    names: tuple[str, ...] = option(
        is_argument=True,
        nargs=-1,
        metavar="[VM | TYPE/NAME ...]",
        help="Objects of the cluster. TYPE is vm, vmi, pod or volume; a name alone is that of a VM.",
    )
    filename: str | None = option(
        "-f",
        metavar="FILE",
        type=click.Path(readable=False),
        help="YAML or JSON file with one or several objects to explain: Pod, VirtualMachine, VirtualMachineInstance or "
        "AdmissionReview. - reads standard input.",
    )
    namespace: str | None = option(
        "-n",
        type=NAMESPACE,
        help="Namespace of the names, and of objects in FILE that state none. Without this option: the namespace of "
        "the kubeconfig's context, else default.",
    )
    output: Literal["text", "yaml", "json"] = option(
        "-o",
        default="text",
        type=OneOf("text", "yaml", "json"),
        help="Output format.",
    )
    opt_in_all: OptInAll | None = read_opt_in_all_option()

    def __post_init__(self) -> None:
        """Report all contradictions at once."""
        problems = []
        if not self.names and not self.filename:
            problems.append("nothing to explain: expected a VM, TYPE/NAME or --filename FILE")
        if self.names and self.filename:
            problems.append(
                f"got {' '.join(self.names)} and --filename {self.filename}: expected names or a file of objects, not "
                "both; a file of a whole cluster is for --manifests"
            )
        problems += two_clusters(self.manifests, self.kubeconfig, self.context)
        if problems:
            raise BadSettings(*problems)
