"""Found: where the pods are that a search has found, by how sure it is that they are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from msgspec import Struct, field

from webhook.core.scheduler.state.pod_info import Presence


class Found(Struct, gc=False):
    """The number of the pods that match, by node.

    Attributes:
        running: bound, and not being deleted.
        terminating: bound, and being deleted.
        expected: not bound yet.
        unsure: in any of these ways, but whether they match depends on labels of their namespaces.
    """

    running: Counter[str] = field(default_factory=Counter)
    terminating: Counter[str] = field(default_factory=Counter)
    expected: Counter[str] = field(default_factory=Counter)
    unsure: Counter[str] = field(default_factory=Counter)

    @property
    def bound(self) -> Collection[str]:
        """The nodes of the pods that are bound, being deleted or not."""
        return {**self.running, **self.terminating} if self.terminating else self.running

    def part(self, presence: Presence, *, certain: bool) -> Counter[str]:
        """Return where pods of this presence are counted."""
        if not certain:
            return self.unsure
        if presence is Presence.TERMINATING:
            return self.terminating
        return self.expected if presence is Presence.EXPECTED else self.running
