"""How often and how many: what the user allows."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

DAY_SECONDS: Final = 86_400.0
FIRST_VERSION: Final = (1, 5)  # of KubeVirt with addedNodeSelector; an older one would drop it, and go anywhere
FAILURES_IN_A_ROW: Final = 3  # of one VM, after which it stays until its next start
FAILED_VMS: Final = 5  # different VMs whose migration failed within a day, after which none starts
HELD_SECONDS: Final = 300.0  # after which a migration that KubeVirt has not begun takes no turn from the others
A_DAY: Final = 2  # migrations of `reunite` for one VM


class ReuniteLimits(Struct, frozen=True, kw_only=True):
    """What the user allows.

    Attributes:
        default: whether a VM without the annotation `kubevirt-scheduler/reunite` takes part.
        apart_seconds: how long a VM is apart, and has had no migration, before it is moved; and how long the node must
            be calm after a drain.
        at_once: migrations of `reunite` in the cluster that are not final.
        at_once_per_node: the same, of one node as source or as target.
        cooldown_seconds: from the end of a successful migration of `reunite`, or of one by others that was no drain
            and no update, to the next migration of the same VM.
    """

    default: bool = True
    apart_seconds: float = 1_800.0
    at_once: int = 2
    at_once_per_node: int = 1
    cooldown_seconds: float = DAY_SECONDS
