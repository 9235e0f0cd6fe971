"""How often and how many: what the user allows, and what KubeVirt's own configuration allows."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from webhook.core.reunite.window import Window

DAY_SECONDS: Final = 86_400.0
FIRST_VERSION: Final = (1, 5)  # of KubeVirt with addedNodeSelector; an older one would drop it, and go anywhere


class ReuniteLimits(Struct, frozen=True, kw_only=True):
    """What the user allows.

    Attributes:
        default_on: whether a VM without the annotation `kubevirt-scheduler/reunite` takes part.
        apart_seconds: how long a VM is apart before it is moved; and how long the node must be calm after a drain.
        at_once: migrations of `reunite` in the cluster that are not final.
        at_once_per_node: the same, of one node as source or as target.
        cooldown_seconds: from the end of a successful migration of `reunite`, or of an eviction by a descheduler, to
            the next migration of the same VM.
        backoff_seconds: after a failed migration of a VM; doubled with each further failure, a day at most.
        failures: failed migrations of `reunite` within a day after which it stops.
        moved_away: how often others may move a VM away after it came home, before it is left alone.
        windows: the times of a week at which migrations may start; none for always.
    """

    default_on: bool = True
    apart_seconds: float = 1_800.0
    at_once: int = 2
    at_once_per_node: int = 1
    cooldown_seconds: float = DAY_SECONDS
    backoff_seconds: float = 600.0
    failures: int = 5
    moved_away: int = 2
    windows: tuple[Window, ...] = ()


class KubeVirtLimits(Struct, frozen=True, kw_only=True):
    """What KubeVirt's configuration says (spec.configuration.migrations), with its defaults.

    `version` is (major, minor), None if it could not be read.
    """

    version: tuple[int, int] | None
    parallel_per_cluster: int = 5
    parallel_outbound_per_node: int = 2
