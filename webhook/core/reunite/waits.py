"""Why a VM that is apart is not migrated now: the codes in their order, and the table of waits.

`longest_wait` is the whole table as one pure function: what pod, VirtualMachineInstance, node, migrations and Events
say, and how long the VM stays. It remembers nothing. What nobody knows waits longest: a missing object never makes a
wait shorter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from enum import Enum, unique
from math import inf
from operator import itemgetter
from typing import Final

from msgspec import Struct

from webhook.core.api.kubevirt import HOSTNAME, is_together
from webhook.core.api.meta import utc_text
from webhook.core.api.node import Node
from webhook.core.observe.events import ReuniteEvent
from webhook.core.reunite.migration import (
    ANNOTATION_WORKLOAD_UPDATE,
    FINAL_MIGRATIONS,
    SYSTEM_MAINTENANCE,
    Migration,
    highest_number,
)
from webhook.core.reunite.vm import VM


class NotYet(Struct, frozen=True):
    """The first rule that says no, with its sentence. `ends`: whether it is a wait that ends by itself."""

    rule: Rule
    sentence: str
    ends: bool = False

    def __str__(self) -> str:
        return f"{self.rule.value}: {self.sentence}"


@unique
class Rule(Enum):
    """Every code. They are stable: Events and `status` show them."""

    NOT_ASKED = "NotAsked"
    NOT_MOVABLE = "NotMovable"
    SEVERAL_NODES = "SeveralNodes"
    NOT_PLACEABLE = "NotPlaceable"
    KUBEVIRT_TOO_OLD = "KubeVirtTooOld"
    KUBEVIRT_CHANGES = "KubeVirtChanges"
    TARGET_NAMED = "TargetNamed"
    CANCELLED = "Cancelled"
    MOVED_AWAY = "MovedAway"
    NOT_CALM = "NotCalm"
    TOO_SOON = "TooSoon"
    FAILED = "Failed"
    NOT_ITS_TURN = "NotItsTurn"

    def says_no(self, sentence: str, *, ends: bool = False) -> NotYet:
        """Return the refusal of this rule."""
        return NotYet(self, sentence, ends)


STARTED: Final = "ReuniteStarted"
_OF_MIGRATION: Final = re.compile(r"migration (\S+):")  # how the message of such an Event begins
EVENT_SECONDS: Final = 3_600.0  # an Event lives so long (kube-apiserver --event-ttl)
_DAY_SECONDS: Final = 86_400.0
_WEEK_SECONDS: Final = 7 * _DAY_SECONDS


class ReuniteLimits(Struct, frozen=True, kw_only=True):
    """What the user allows.

    Attributes:
        default: whether a VM without the annotation `kubevirt-scheduler/reunite` takes part.
        apart_seconds: the short wait.
        rest_seconds: the wait after a move away from home of which nobody knows why.
        at_once: migrations of `reunite` in a namespace that are not final, and those that one run creates.
    """

    default: bool = True
    apart_seconds: float = 1_800.0
    rest_seconds: float = 14_400.0
    at_once: int = 2


class Past(Struct, frozen=True, kw_only=True):
    """What was read about one VM that is apart.

    Attributes:
        migrations: of the VM, those that KubeVirt still has.
        names: of all migrations of the namespace.
        events: of `reunite` on the VirtualMachineInstance.
        home: the node of the share-managers; None if it was not read.
        oldest_at_home: when the oldest VM's pod on that node was created (RFC 3339); empty if there is none.
    """

    migrations: Sequence[Migration] = ()
    names: AbstractSet[str] = frozenset()
    events: Sequence[ReuniteEvent] = ()
    home: Node | None = None
    oldest_at_home: str = ""


@unique
class Row(Enum):
    """One row: its code, and what was seen."""

    def __init__(self, rule: Rule, seen: str) -> None:
        self.rule = rule
        self.seen = seen

    NAMED = Rule.TARGET_NAMED, "migration {name} named node {node} for it (nodeSelector of pod {pod})"
    CANCELLED = Rule.CANCELLED, "a migration of it was cancelled at {at} (status.migrationState of its VMI)"
    DELETED = Rule.CANCELLED, "migration {name}, which began at {at}, was deleted (Event ReuniteStarted)"
    FROM_ANOTHER = Rule.TOO_SOON, "{name} moved it at {at} from node {source}, which is not that of its share-manager"
    UPDATED = Rule.TOO_SOON, "{name} moved it at {at}, for a change of the VM or an upgrade of KubeVirt"
    BEFORE_READY = Rule.NOT_CALM, "{name} moved it at {at}, and its share-manager's node is Ready only since {ready}"
    DRAINED = Rule.NOT_CALM, "{name} moved it at {at} away from its share-manager's node, as all other VMs there"
    MOVED = Rule.MOVED_AWAY, "{name} moved it at {at}, and no object says why"
    APART = Rule.TOO_SOON, "it is apart since {at}"
    READY = Rule.NOT_CALM, "its share-manager's node is Ready since {at}"
    HAS_FAILED = Rule.FAILED, "migration {name} failed at {at}{because}"


_FIXED: Final = (Row.DELETED, Row.UPDATED)  # the others double with each known return


def longest_wait(vm: VM, past: Past, limits: ReuniteLimits, now: float) -> NotYet | None:
    """Return the refusal of the row that holds the VM longest from `now` on; None if every wait is over."""
    times, of_start = _known_returns(vm, past), _of_this_start(vm, past)
    # KubeVirt has no more of them: how often the VM came home is not known, so each wait is a long one.
    forgotten = len(of_start) >= FINAL_MIGRATIONS and not any(each.ours for each in of_start)
    least = limits.rest_seconds if forgotten else 0.0
    waits = (
        (since + _length(row, max(seconds, least), times), row, {"at": _text(since), **names})
        for row, since, seconds, names in _seen(vm, past, limits)
    )
    until, row, names = max(waits, key=itemgetter(0))
    if until <= now:
        return None
    end = "others move it, or its next start" if until == inf else utc_text(until)
    sentence = f"{row.seen.format_map(names)}; it stays until {end}"
    sentence += f", or as long as you forbid it: {vm.forbids}" if row is Row.MOVED else ""
    return row.rule.says_no(sentence, ends=until < inf)


_Seen = tuple[Row, float, float, dict[str, object]]  # the row, since when, for how many seconds, and names


def _seen(vm: VM, past: Past, limits: ReuniteLimits) -> Iterator[_Seen]:
    """Yield each row that holds for the VM, over or not."""
    calm = limits.apart_seconds
    arrived, state = vm.arrived_by, vm.status.migration_state
    host = (vm.pod.spec.node_selector or {}).get(HOSTNAME) if vm.pod else None
    if arrived and host and host != vm.placement.node_selector.get(HOSTNAME) and not is_together(arrived[1]):
        yield Row.NAMED, 0.0, inf, {"name": arrived[1], "node": host, "pod": vm.row.pod}
    if state and state.abort_requested and state.end_timestamp:
        yield Row.CANCELLED, unix_seconds(state.end_timestamp), _DAY_SECONDS, {}
    for event in past.events:
        name = _OF_MIGRATION.match(event.message)
        created = unix_seconds(event.metadata.creation_timestamp or "")
        if event.reason == STARTED and event.involved_object.uid == vm.uid and name and name[1] not in past.names:
            yield Row.DELETED, created, EVENT_SECONDS, {"name": name[1]}
    moved = _arrival(vm, past, limits, arrived) if arrived and not is_together(arrived[1]) else None
    if moved:
        yield moved
    since = unix_seconds(vm.row.since or "") or inf
    if moved is None or moved[1] < since:
        yield Row.APART, since, calm, {}
    if past.home and past.home.ready_since:
        yield Row.READY, unix_seconds(past.home.ready_since), calm, {}
    last = max(_of_this_start(vm, past), key=lambda each: (each.created, each.name), default=None)
    if last and last.ours and last.failed:
        because = f": {last.state.failure_reason}" if last.state.failure_reason else ""
        yield Row.HAS_FAILED, unix_seconds(last.ended), calm, {"name": last.name, "because": because}


def _arrival(vm: VM, past: Past, limits: ReuniteLimits, arrived: tuple[str, str]) -> _Seen:
    """Return the row of the migration by which others brought the VM to its node: the first that it fits."""
    uid, name = arrived
    migration = next((each for each in past.migrations if each.metadata.uid == uid or each.name == name), None)
    state, calm = vm.status.migration_state, limits.apart_seconds
    own = state if state and state.migration_uid == uid else None  # a later one that failed writes over it
    kept = migration.state if migration else None
    source = (own and own.source_node) or (kept and kept.source_node) or (migration and migration.evacuates)
    ended = (own and own.end_timestamp) or (migration and migration.ended) or vm.row.since
    at, ready = unix_seconds(ended or ""), unix_seconds((past.home.ready_since if past.home else None) or "")
    by = f"migration {name}" if name else "a migration"
    names: dict[str, object] = {"name": by, "source": source, "ready": _text(ready)}
    if source and source != vm.home:
        return Row.FROM_ANOTHER, at, calm, names
    if migration and migration.metadata.annotation(ANNOTATION_WORKLOAD_UPDATE) is not None:
        return Row.UPDATED, at, calm, names
    if at and ready > at:
        return Row.BEFORE_READY, ready, calm, {**names, "at": _text(at)}
    balances = migration is not None and migration.spec.priority == SYSTEM_MAINTENANCE
    if migration and migration.evacuates and not balances and not _stayed(past, migration):
        return Row.DRAINED, at, calm, names
    return Row.MOVED, at, limits.rest_seconds, names


def _text(seconds: float) -> str:
    return utc_text(seconds) if 0.0 < seconds < inf else "an unknown time"


def _stayed(past: Past, migration: Migration) -> bool:
    """Whether a VM's pod on home is older than the migration: a drain moves all, a balancer some."""
    return bool(past.oldest_at_home) and past.oldest_at_home < migration.created


def _of_this_start(vm: VM, past: Past) -> list[Migration]:
    return [each for each in past.migrations if each.is_final and each.created >= vm.started]


def _known_returns(vm: VM, past: Past) -> int:
    """How often `reunite` has migrated the VM since its start, by the numbers in the names of its migrations."""
    ours = [each for each in past.migrations if each.ours]
    newest = highest_number(vm.row.name, (each for each in ours if each.created >= vm.started))
    before = highest_number(vm.row.name, (each for each in ours if each.created < vm.started))
    return max(0, newest - before) if newest else 0


def _length(row: Row, seconds: float, times: int) -> float:
    """Return the wait after so many returns. Only a wait that is longer by itself is longer than a week."""
    return seconds if row in _FIXED else max(seconds, min(seconds * 2.0 ** min(times, 32), _WEEK_SECONDS))


def unix_seconds(text: str) -> float:
    """Return an RFC 3339 time as seconds since 1970; 0 for a text that is not a time."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
