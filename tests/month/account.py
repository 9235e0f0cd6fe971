"""VM-hours: where each VM was, beside its share-manager or apart, and since what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

LOCAL: Final = "local"
PENDING: Final = "pending"
STRANDED: Final = "stranded"
OFF: Final = "off"
NOT_OPTED_IN: Final = "not opted in"


class Place(NamedTuple):
    """Of a VM at one time: its node, those of its share-managers, and whether it is on.

    `pinned`: its pod has no node, and the webhook requires one.
    """

    wanted: bool
    node: str | None
    homes: tuple[str | None, ...]
    pinned: bool = False


class Account:
    """Sums up hours.

    Attributes:
        hours: by state. An hour of a VM with two claims is half an hour for each of them.
        apart: of these, the hours apart by what happened last.
    """

    def __init__(self, opted_in: Mapping[str, bool]) -> None:
        self.hours: Counter[str] = Counter()
        self.apart: Counter[str] = Counter()
        self._opted_in = opted_in
        self._since: dict[str, str] = {}
        self._places: dict[str, Place] = {}

    def see(self, places: Mapping[str, Place], cause: str, by_vm: Mapping[str, str]) -> None:
        """This is where they are now, after what happened, and what happened to some of them alone."""
        for name, place in places.items():
            if place != self._places.get(name):
                self._since[name] = by_vm.get(name, cause)
        self._places = dict(places)

    def spend(self, hours: float) -> None:
        """So long they stay there."""
        for name, place in self._places.items():
            for state, share in _shares(place):
                if not self._opted_in[name] and state in (LOCAL, "apart"):
                    self.hours[f"{NOT_OPTED_IN}, {state}"] += hours * share
                    continue
                self.hours[state] += hours * share
                if state == "apart":
                    self.apart[self._since[name]] += hours * share

    def report(self) -> dict[str, Any]:
        """All sums, in hours."""
        return {
            "hours": {state: round(hours, 1) for state, hours in sorted(self.hours.items())},
            "apart": {cause: round(hours, 1) for cause, hours in sorted(self.apart.items())},
        }


def _shares(place: Place) -> Iterable[tuple[str, float]]:
    if not place.wanted:
        return [(OFF, 1.0)]
    if place.node is None:
        return [(STRANDED if place.pinned else PENDING, 1.0)]
    each = 1 / len(place.homes)
    return [(LOCAL if home == place.node else "apart", each) for home in place.homes]
