"""CycleState: what the plugins have found for one pod under admission, while it is decided.

Upstream: CycleState in pkg/scheduler/framework/cycle_state.go. A plugin looks at other pods once for the incoming pod,
and then filters node by node. It looks at nothing before the first node needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.scheduler.state.node_info import NO_HEADROOM
from webhook.core.scheduler.state.snapshot import AnySnapshot, NoSnapshot
from webhook.core.scheduler.topology.topology_lookup import TopologyLookup

StateT = TypeVar("StateT")


class CycleState:
    """One pod under admission, the snapshot of its cluster, and what plugins have found.

    Use it within one turn of the event loop: afterwards pods and nodes can be different ones.

    Attributes:
        incoming: the pod.
        snapshot: the nodes and pods; or why there is no snapshot.
        headroom: how much of each resource must stay free on a node: milli-CPU or whole units.
        budget: how many steps all plugins together may take for this pod.
    """

    __slots__ = ("_found", "_lookup", "budget", "headroom", "incoming", "snapshot")

    def __init__(self, incoming: IncomingPod, snapshot: AnySnapshot, budget: Budget | None = None) -> None:
        self.incoming = incoming
        self.snapshot = snapshot
        self.headroom: Mapping[str, int] = NO_HEADROOM
        if not isinstance(snapshot, NoSnapshot):
            self.headroom = snapshot.headroom
        self.budget = budget or Budget()
        self._lookup: TopologyLookup | None = None
        self._found: dict[Callable[..., Any], Any] = {}

    def state(self, search: Callable[[IncomingPod, TopologyLookup], StateT]) -> StateT:
        """Return what `search` finds for the incoming pod; it is called once for as long as pods stay the same."""
        lookup = self._lookup
        if lookup is None or lookup.is_outdated():
            assert not isinstance(self.snapshot, NoSnapshot)  # noqa: S101 - for the type checker: evaluate() has asked
            self._lookup = lookup = TopologyLookup(self.snapshot, self.budget)
            self._found.clear()
        found: StateT | None = self._found.get(search)
        if found is None:
            found = self._found[search] = search(self.incoming, lookup)
        return found
