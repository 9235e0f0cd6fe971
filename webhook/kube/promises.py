"""What was promised of nodes a moment ago, by us and, for all that we know, by another replica likewise.

Other replicas' pins are known once their pods are seen. Until then each is taken to have given away what we have, and
as we are asked for one pod more, to be asked for one, too: calls go to all alike. So of k places that are left at a
time each of two replicas gives at most half, however late they hear of each other, and while VMs keep coming neither
gives the last. A VM that starts alone gets it; should two replicas be asked for it at once, when neither was asked for
any just before, both give it: k + 1.
Invariant: a promise is open until it is settled, or a pod is seen that another replica has pinned to the same node.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final

from webhook.core.requests import Usage
from webhook.core.room import NO_HEADROOM, PODS

OTHER_REPLICAS: Final = 1  # the Deployment of manifests/ has two


class Promises:
    """Open promises, of which an owner has one."""

    def __init__(self) -> None:
        self._open: dict[str, dict[Hashable, Usage]] = {}  # by node and owner, the oldest first
        self._nodes: dict[Hashable, str] = {}  # by owner
        self._latest = Usage()
        self._asked = 0

    def ask(self, usage: Usage) -> None:
        """A place was asked for, whether or not it was promised. To be forgotten after a moment."""
        self._latest = usage
        self._asked += 1

    def forget(self) -> None:
        """One of the times that a place was asked for was long enough ago."""
        self._asked -= 1

    def add(self, owner: Hashable, node: str, usage: Usage) -> None:
        """Open one, in place of an older one."""
        self.settle(owner)
        self._open.setdefault(node, {})[owner] = usage
        self._nodes[owner] = node

    def settle(self, owner: Hashable) -> None:
        """It was long enough ago, if it is open at all."""
        node = self._nodes.pop(owner, None)
        if node is not None:
            here = self._open[node]
            del here[owner]
            if not here:
                del self._open[node]

    def matched(self, node: str) -> None:
        """Another replica's pin is seen: one less that is unknown."""
        if node in self._open:
            self.settle(next(iter(self._open[node])))

    def open(self, node: str) -> int:
        """How many others may have promised just now, of this node."""
        return len(self._open.get(node, ())) * OTHER_REPLICAS

    def contested(self, node: str) -> Mapping[str, int]:
        """How much of each resource others may be giving away that we can't know yet."""
        if not self._open and not self._asked:
            return NO_HEADROOM
        unknown = (*self._open.get(node, {}).values(), self._latest)
        taken = {PODS: len(unknown) * OTHER_REPLICAS}
        for usage in unknown:
            for resource, amount in usage.requests:
                taken[resource] = taken.get(resource, 0) + amount * OTHER_REPLICAS
        return taken
