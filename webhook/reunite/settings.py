"""What `reunite` runs with: its options, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from webhook.cluster_options import LonghornSettings, opt_in_all_option
from webhook.component_base.address import Address
from webhook.component_base.errors import BadSettings
from webhook.component_base.options import ADDRESS, COUNT, NAME, SECONDS, OneOf, OnOrOff, Parsed, option

if TYPE_CHECKING:
    from webhook.core.opt_in import OptInAll
    from webhook.core.reunite.limits import ReuniteLimits
    from webhook.core.reunite.stuck import StuckLimits


@dataclass(frozen=True, kw_only=True)
class ReuniteSettings(LonghornSettings):
    """What `reunite` runs with.

    Raises:
        BadSettings: a window or a time zone that is none.
    """

    dry_run: bool = option(
        default="on",
        type=OnOrOff(),
        help="Whether the program only says what it would do: on or off. With off it creates and deletes migrations.",
    )
    once: bool = option(
        is_flag=True,
        help="Print what the program would do with each VM that is apart, and why not yet, and exit. Writes nothing.",
    )
    default: bool = option(
        default="on",
        type=OnOrOff(),
        help="Whether a VM without the annotation kubevirt-scheduler/reunite takes part: on or off. The annotation "
        "true lets a VM in, false keeps one out.",
    )
    apart_seconds: float = option(default="1800", type=SECONDS, help="How long a VM is apart before it is migrated.")
    at_once: int = option(default="2", type=COUNT, help="Most migrations of this program at one time.")
    at_once_per_node: int = option(
        default="1",
        type=COUNT,
        help="Most migrations of this program at one time from or to one node.",
    )
    cooldown_seconds: float = option(
        default="86400",
        type=SECONDS,
        help="How long a VM stays after this program has migrated it, or after an eviction that was no drain, even if "
        "it is apart.",
    )
    backoff_seconds: float = option(
        default="600",
        type=SECONDS,
        help="How long a VM stays after its migration failed; twice as long after each further failure, a day at most.",
    )
    failures: int = option(
        default="5",
        type=COUNT,
        help="Failed migrations of this program within a day after which it starts no other.",
    )
    moved_away: int = option(
        default="2",
        type=COUNT,
        help="How often others may move a VM away again before this program leaves it alone until its next start.",
    )
    windows: str = option(
        default="",
        type=Parsed("WINDOWS", str),
        help="Times of the week at which migrations may start, separated by commas, such as "
        "Sat 01:00-05:00,Mon-Fri 22:00-04:00. Without this option they may always start.",
    )
    time_zone: str = option(default="UTC", type=NAME, help="Time zone of --windows, such as Europe/Berlin.")
    restart_stuck: bool = option(
        default="off",
        type=OnOrOff(),
        help="Whether a stuck VM is restarted: on or off. The program deletes a pod that waits for nodes that the "
        "webhook required, if another node would take it. manifests/components/restart-stuck gives the right.",
    )
    stuck_seconds: float = option(
        default="60",
        type=SECONDS,
        help="How long kube-scheduler must have found no node for the pod of a stuck VM.",
    )
    health_listen: Address = option(
        default=":8080",
        type=ADDRESS,
        help="Address of /healthz, /readyz and /metrics (plain HTTP).",
    )
    log_level: Literal["debug", "info", "warning", "error"] = option(
        default="info",
        type=OneOf("debug", "info", "warning", "error"),
        help="Lowest level that the program logs: debug, info, warning or error.",
    )
    opt_in_all: OptInAll = opt_in_all_option()

    def __post_init__(self) -> None:
        """Say what is wrong with the windows before anything starts."""
        self.limits()

    def stuck_limits(self) -> StuckLimits:
        """Return the limits of webhook.core.reunite.stuck."""
        from webhook.core.reunite.stuck import StuckLimits  # noqa: PLC0415 - help and completion do without

        return StuckLimits(default_on=self.default, stuck_seconds=self.stuck_seconds)

    def limits(self) -> ReuniteLimits:
        """Return the limits of webhook.core.reunite.

        Raises:
            BadSettings: a window or a time zone that is none.
        """
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - help and completion do without

        from webhook.core.reunite.limits import ReuniteLimits  # noqa: PLC0415 - as above
        from webhook.core.reunite.window import parse_window  # noqa: PLC0415 - as above

        try:
            zone = ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise BadSettings(
                f"got --time-zone {self.time_zone}: expected a time zone of the IANA database, such as Europe/Berlin"
            ) from None
        try:
            windows = tuple(parse_window(each, zone) for each in self.windows.split(",") if each.strip())
        except ValueError as problem:
            raise BadSettings(f"got --windows {self.windows}: {problem}") from None
        return ReuniteLimits(
            default_on=self.default,
            apart_seconds=self.apart_seconds,
            at_once=self.at_once,
            at_once_per_node=self.at_once_per_node,
            cooldown_seconds=self.cooldown_seconds,
            backoff_seconds=self.backoff_seconds,
            failures=self.failures,
            moved_away=self.moved_away,
            windows=windows,
        )
