"""What `explain` runs with: its options, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from webhook.cluster_options import LonghornSettings, manifests_option, two_clusters
from webhook.component_base.errors import BadSettings
from webhook.component_base.options import NAMESPACE, OneOf, option


@dataclass(frozen=True, kw_only=True)
class ExplainSettings(LonghornSettings):
    """What `explain` runs with: `names` of objects in the cluster, or else a file of them.

    Raises:
        BadSettings: both or neither of these, or two clusters at once.
    """

    names: tuple[str, ...] = option(
        is_argument=True,
        nargs=-1,
        metavar="[VM | TYPE/NAME ...]",
        help="Objects of the cluster. TYPE is vm, vmi or pod; a name alone is that of a VM.",
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
    manifests: Path | None = manifests_option()

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
