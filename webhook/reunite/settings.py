"""What `reunite` runs with: its options, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from webhook.cluster_options import LonghornSettings, manifests_option, opt_in_all_option, two_clusters
from webhook.component_base.errors import BadSettings
from webhook.component_base.options import COUNT, SECONDS, OneOf, OnOrOff, option

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.core.opt_in import OptInAll
    from webhook.core.reunite.limits import ReuniteLimits


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
        help="How long a VM is apart, and has had no migration, before it is migrated.",
    )
    at_once: int = option(default="2", type=COUNT, help="Most migrations of this program at one time.")
    at_once_per_node: int = option(
        default="1",
        type=COUNT,
        help="Most migrations of this program at one time from or to one node.",
    )
    cooldown_seconds: float = option(
        default="86400",
        type=SECONDS,
        help="How long a VM that is apart stays after this program has migrated it, or somebody else for no drain and "
        "no update.",
    )
    restart_stuck: bool = option(
        default="off",
        type=OnOrOff(),
        help="Whether a stuck VM is restarted, by the deletion of its pod: on or off. "
        "manifests/components/restart-stuck gives the right.",
    )
    opt_in_all: OptInAll = opt_in_all_option()
    manifests: Path | None = manifests_option("-f")

    def __post_init__(self) -> None:
        """Report all contradictions at once."""
        problems = two_clusters(self.manifests, self.kubeconfig, self.context)
        if self.manifests and self.dry_run != "client":
            got = f"got --dry-run {self.dry_run} and --manifests {self.manifests}"
            problems.append(f"{got}: expected a live cluster to write to")
        if problems:
            raise BadSettings(*problems)

    def limits(self) -> ReuniteLimits:
        """Return the limits of webhook.core.reunite."""
        import msgspec  # noqa: PLC0415 - help and completion do without

        from webhook.core.reunite.limits import ReuniteLimits  # noqa: PLC0415 - see above

        return msgspec.convert(self, ReuniteLimits, from_attributes=True)
