"""Checks what the webhook says of cordoned nodes: true now, or at a time at most STALE_SECONDS ago.

A VM is not pinned to a node that is cordoned for longer. No reason says that a node is cordoned which has not been
cordoned for longer.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from simulation.admission import Admitted
from simulation.api_server import Object
from simulation.check_answers import STALE_SECONDS, Breaks

from webhook.core.decision import Pin
from webhook.core.reasons import Reason
from webhook.core.view import Kind

if TYPE_CHECKING:
    from simulation.world import World


class CordonChecks:
    """Checks each answer by the nodes that were cordoned and uncordoned."""

    def __init__(self, world: World, broken: Breaks) -> None:
        self.world = world
        self.broken = broken
        self._cordoned: dict[str, float] = {}  # since when, for a node that is cordoned now
        self._uncordoned: dict[str, float] = {}  # the end of the last cordon
        world.api.listeners.append(self._changed)
        world.webhook.admitted.append(self._admitted)

    def _changed(self, kind: Kind, name: str, node: Object | None) -> None:
        if kind is not Kind.NODE or node is None:
            return
        now = self.world.engine.now
        if node["spec"].get("unschedulable"):
            self._cordoned.setdefault(name, now)
        elif self._cordoned.pop(name, None) is not None:
            self._uncordoned[name] = now

    def _admitted(self, admitted: Admitted) -> None:
        decision, oldest = admitted.answer.decision, admitted.at - STALE_SECONDS
        for node in decision.required if isinstance(decision, Pin) else ():
            if self._cordoned.get(node, inf) < oldest:
                raise self.broken("cordon", f"{node} is required, and cordoned since {self._cordoned[node]:.0f}")
        for fit in decision.node_fits:
            said = fit.why.reason is Reason.NODE_CORDONED
            if said and fit.node not in self._cordoned and self._uncordoned.get(fit.node, -inf) < oldest:
                raise self.broken("cordon", f"the answer says that {fit.node} is cordoned, and it is not")
