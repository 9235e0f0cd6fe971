"""VM: what the models know of one VirtualMachine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from simulation.migration import Migration

SICK: Final = ("refused", "slow", "never converges", "changed", "busy")
"""A VM whose migration the API server refuses, KubeVirt does not begin, or fails; a VM whose node selector was changed
live, and one whose CPUs are being changed."""


@dataclass
class VM:
    """One VirtualMachine.

    Attributes:
        pod: the key of the pod in which it runs or will run; empty for none.
        running: whether its guest runs.
        started: when its VirtualMachineInstance was created.
        evacuates: the node that it must leave.
        cause: what placed the VM or its share-manager last.
        migration: the unfinished migration.
        finished: the migrations that KubeVirt still has.
        last_migration: the one that ended last.
        sick: what keeps its migrations from ending well: a name of SICK; empty for a healthy VM.
        failed_starts: how many of its VirtualMachineInstances in a row have ended before they ran.
    """

    name: str
    memory_mib: int
    volumes: tuple[str, ...]
    always_on: bool = False
    uid: str = ""
    pod: str = ""
    wanted: bool = False
    running: bool = False
    starts: int = 0
    started: float = 0.0
    evacuates: str = ""
    cause: str = "start"
    migration: Migration | None = None
    finished: list[Migration] = field(default_factory=list)
    last_migration: Migration | None = None
    failed_starts: int = 0
    sick: str = ""
