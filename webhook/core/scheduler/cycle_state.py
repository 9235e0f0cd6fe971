"""CycleState: what the plugins have found for one pod under admission, while it is decided.

Upstream: CycleState in pkg/scheduler/framework/cycle_state.go. A plugin reads the incoming pod's rules once, and then
filters node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.scheduler.state.node_info import NO_HEADROOM
from webhook.core.scheduler.state.snapshot import AnySnapshot, NoSnapshot

StateT = TypeVar("StateT")


class CycleState:
    """One pod under admission, the snapshot of its cluster, and what plugins have found.

    Attributes:
        incoming: the pod.
        snapshot: the nodes and pods; or why there is no snapshot.
        headroom: how much of each resource must stay free on a node: milli-CPU or whole units.
    """

    __slots__ = ("_found", "headroom", "incoming", "snapshot")

    def __init__(self, incoming: IncomingPod, snapshot: AnySnapshot) -> None:
        self.incoming = incoming
        self.snapshot = snapshot
        self.headroom: Mapping[str, int] = NO_HEADROOM
        if not isinstance(snapshot, NoSnapshot):
            self.headroom = snapshot.headroom
        self._found: dict[Callable[..., Any], Any] = {}

    def state(self, read: Callable[[IncomingPod], StateT]) -> StateT:
        """Return what `read` makes of the incoming pod; it is called once."""
        state: StateT | None = self._found.get(read)
        if state is None:
            state = self._found[read] = read(self.incoming)
        return state
