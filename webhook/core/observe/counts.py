"""How many VMs are in each state, by which cause they are in trouble, and how many percent are together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from webhook.core.causes import short_cause
from webhook.core.observe.vm_status import TROUBLED, State, VMStatus

COMPARED: Final = (State.TOGETHER, *TROUBLED, State.PENDING)
"""The states of the VMs that a percentage counts, as the Prometheus rule has them (monitoring/prometheus-rule.yaml).

A VM that is free has no share-manager that it could be with, and of an unknown one nobody knows.
"""


def count_causes(statuses: Iterable[VMStatus]) -> dict[str, int]:
    """Return the number of VMs in trouble by each cause, the most frequent first."""
    counts = Counter(short_cause(each.why) for each in statuses if each.state in TROUBLED)
    return dict(sorted(counts.items(), key=lambda counted: (-counted[1], counted[0])))


def percent_together(counts: Mapping[State, int]) -> int | None:
    """Return how many percent of the VMs that can be compared are together; None if there is none.

    100 means all of them.
    """
    compared = sum(counts[state] for state in COMPARED)
    return 100 * counts[State.TOGETHER] // compared if compared else None


def count_states(statuses: Iterable[VMStatus]) -> dict[State, int]:
    """Return the number of VMs in each state, with 0 for a state that no VM is in."""
    counts = dict.fromkeys(State, 0)
    for each in statuses:
        counts[each.state] += 1
    return counts
