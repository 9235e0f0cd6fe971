"""Told: what one process of `reunite` tells, in place of its Reporter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from webhook.core.reunite.not_yet import NotYet


class Told:
    """What one process tells: a Reporter that only counts.

    `listeners` are called with the first rule that says no for each VM, by the name of the VM.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.listeners: list[Callable[[str, NotYet], object]] = []

    def rules(self, waiting: Mapping[tuple[str, str], NotYet]) -> None:
        """Hand on why VMs are not moved yet."""
        for (_, name), why in waiting.items():
            for listener in self.listeners:
                listener(name, why)

    def __getattr__(self, name: str) -> Any:
        """Count every other call."""
        return lambda *_: self.counts.update([name])
