"""What `reunite` runs with: its options, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from webhook.cluster_options import LonghornSettings, manifests_option, opt_in_all_option, two_clusters
from webhook.component_base.errors import BadSettings
from webhook.component_base.options import COUNT, NAMESPACE, SECONDS, OneOf, OnOrOff, option

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.core.opt_in import OptInAll
    from webhook.core.reunite.waits import ReuniteLimits


@dataclass(frozen=True, kw_only=True)
class ReuniteSettings(LonghornSettings):
    """What `reunite` runs with.

    Raises:
        BadSettings: two options that exclude each other.
    """

    dry_run: Literal["none", "server", "client"] = option(
        default="client",
        type=OneOf("none", "server", "client"),
        help="As in kubectl. client: the program only says what it would do. server: the API server also checks each "
        "request, and keeps nothing. none: it acts.",
    )
    default: bool = option(
        default="on",
        type=OnOrOff(),
        help="Whether a VM without the annotation kubevirt-scheduler/reunite takes part: on or off. The annotation "
        "true lets a VM in, false keeps one out.",
    )
    apart_seconds: float = option(
        default="1800",
        type=SECONDS,
        help="The short wait: how long a VM is apart, and its share-manager's node calm, before it is migrated.",
    )
    rest_seconds: float = option(
        default="14400",
        type=SECONDS,
        help="How long a VM stays where others moved it, if no object says why.",
    )
    at_once: int = option(
        default="2",
        type=COUNT,
        help="Most migrations of this program at one time in a namespace, and most that one run creates.",
    )
    names: tuple[str, ...] = option(
        is_argument=True, nargs=-1, metavar="[VM ...]", help="Names of VMs. Without one: all VMs."
    )
    namespace: str | None = option(
        "-n", type=NAMESPACE, help="Only VMs of this namespace. Without this option: of all namespaces."
    )
    output: Literal["table", "yaml"] = option(
        "-o",
        default="table",
        type=OneOf("table", "yaml"),
        help="table: a line for each VM. yaml: the migrations that the program would create now, for kubectl create "
        "-f -, with comments that say why.",
    )
    now: bool = option(
        is_flag=True,
        help="Beside -o yaml: leave out the waits that end by themselves, and how many at one time.",
    )
    opt_in_all: OptInAll = opt_in_all_option()
    manifests: Path | None = manifests_option()

    def __post_init__(self) -> None:
        """Report all contradictions at once."""
        problems = two_clusters(self.manifests, self.kubeconfig, self.context)
        if self.manifests and self.dry_run != "client":
            got = f"got --dry-run {self.dry_run} and --manifests {self.manifests}"
            problems.append(f"{got}: expected a live cluster to write to")
        if self.output == "yaml" and self.dry_run != "client":
            problems.append(f"got --dry-run {self.dry_run} and --output yaml: expected one of the two")
        if self.now and self.output != "yaml":
            problems.append("got --now: expected --output yaml beside it")
        if problems:
            raise BadSettings(*problems)

    def limits(self) -> ReuniteLimits:
        """Return the limits of webhook.core.reunite."""
        import msgspec  # noqa: PLC0415 - help and completion do without

        from webhook.core.reunite.waits import ReuniteLimits  # noqa: PLC0415 - see above

        return msgspec.convert(self, ReuniteLimits, from_attributes=True)
