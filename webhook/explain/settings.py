"""What `explain` runs with: its options, and their values."""

from __future__ import annotations

from dataclasses import dataclass

import click

from webhook.cluster_options import AnyClusterSettings
from webhook.component_base.options import NAMESPACE, argument, option


@dataclass(frozen=True, kw_only=True)
class ExplainSettings(AnyClusterSettings):
    """What `explain` runs with: `names` of objects in the cluster, or else a file of them.

    Raises:
        UsageError: both or neither of these, or two clusters at once.
    """

    names: tuple[str, ...] = argument(
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
    output: str = option(
        "-o",
        default="text",
        type=click.Choice(["text", "json"]),
        help="Output format.",
    )

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        super().__post_init__()
        if not self.names and not self.filename:
            raise click.UsageError("nothing to explain: expected a VM, TYPE/NAME or --filename FILE")
        if self.names and self.filename:
            raise click.UsageError(
                f"got {' '.join(self.names)} and --filename {self.filename}: expected names or a file of objects, not "
                "both; a file of a whole cluster is for --manifests"
            )
