"""Why a VM that is apart is not migrated now: the codes in their order, and the table of waits.

`longest_wait` is the whole table as one pure function: what pod, VirtualMachineInstance, node, migrations and Events
say, and how long the VM stays. It remembers nothing. What nobody knows waits longest: a missing object never makes a
wait shorter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import Enum, unique
from math import inf
from operator import itemgetter
from typing import Final, NamedTuple

from msgspec import Struct

from webhook.core.api.kubevirt import HOSTNAME, is_together
from webhook.core.api.meta import utc_text
from webhook.core.api.migration import (
    ANNOTATION_WORKLOAD_UPDATE,
    FINAL_MIGRATIONS,
    SYSTEM_MAINTENANCE,
    Migration,
    highest_number,
)
from webhook.reunite.settings import ReuniteSettings
from webhook.reunite.vm import VM


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


STARTED: Final = "ReuniteStarted"
_OF_MIGRATION: Final = re.compile(r"migration (\S+):")  # how the message of such an Event begins
EVENT_SECONDS: Final = 3_600.0  # an Event lives so long (kube-apiserver --event-ttl)
_DAY_SECONDS: Final = 86_400.0
_WEEK_SECONDS: Final = 7 * _DAY_SECONDS


class Wait(NamedTuple):
    """One row that holds for the VM, over or not: its code, what was seen, since when, and for how many seconds.

    `doubles`: whether it is longer after each known return.
    """

    rule: Rule
    seen: str
    since: float
    seconds: float
    doubles: bool = True

    def until(self, least: float, times: int) -> float:
        """Return its end after so many returns. Only a wait that is longer by itself is longer than a week."""
        seconds = max(self.seconds, least)
        doubled = min(seconds * 2.0 ** min(times, 32), _WEEK_SECONDS) if self.doubles else 0.0
        return self.since + max(seconds, doubled)


def longest_wait(vm: VM, limits: ReuniteSettings, now: float) -> NotYet | None:
    """Return the refusal of the row that holds the VM longest from `now` on; None if every wait is over."""
    times, of_start = _known_returns(vm), _of_this_start(vm)
    # KubeVirt has no more of them: how often the VM came home is not known, so each wait is a long one.
    forgotten = len(of_start) >= FINAL_MIGRATIONS and not any(each.ours for each in of_start)
    least = limits.rest_seconds if forgotten else 0.0
    until, wait = max(((each.until(least, times), each) for each in _waits(vm, limits)), key=itemgetter(0))
    if until <= now:
        return None
    end = "others move it, or its next start" if until == inf else utc_text(until)
    sentence = f"{wait.seen}; it stays until {end}"
    sentence += f", or as long as you forbid it: {vm.forbids}" if wait.rule is Rule.MOVED_AWAY else ""
    return NotYet(wait.rule, sentence, ends=until < inf)


def _waits(vm: VM, limits: ReuniteSettings) -> Iterator[Wait]:
    """Yield each row that holds for the VM, over or not."""
    calm = limits.apart_seconds
    arrived, state = vm.arrived_by, vm.status.migration_state
    host = (vm.pod.spec.node_selector or {}).get(HOSTNAME) if vm.pod else None
    if arrived and host and host != (vm.spec.node_selector or {}).get(HOSTNAME) and not is_together(arrived[1]):
        named = f"migration {arrived[1]} named node {host} for it (nodeSelector of pod {vm.row.pod})"
        yield Wait(Rule.TARGET_NAMED, named, 0.0, inf)
    if state and state.abort_requested and state.end_timestamp:
        at = unix_seconds(state.end_timestamp)
        seen = f"a migration of it was cancelled at {_text(at)} (status.migrationState of its VMI)"
        yield Wait(Rule.CANCELLED, seen, at, _DAY_SECONDS)
    for event in vm.events:
        name = _OF_MIGRATION.match(event.message)
        if event.reason == STARTED and name and name[1] not in vm.names:
            at = unix_seconds(event.metadata.creation_timestamp or "")
            seen = f"migration {name[1]}, which began at {_text(at)}, was deleted (Event ReuniteStarted)"
            yield Wait(Rule.CANCELLED, seen, at, EVENT_SECONDS, doubles=False)
    since, doubles, by = unix_seconds(vm.row.since or "") or inf, True, ""
    if arrived and not is_together(arrived[1]):
        moved = _move(vm, arrived)
        if not moved.explained:
            yield Wait(Rule.MOVED_AWAY, f"{moved.sentence}, and no object says why", moved.at, limits.rest_seconds)
        elif moved.at >= since:
            since, doubles, by = moved.at, not moved.is_update, f": {moved.sentence}"
    yield Wait(Rule.TOO_SOON, f"it is apart since {_text(since)}{by}", since, calm, doubles)
    if vm.node_at_home and vm.node_at_home.ready_since:
        at = unix_seconds(vm.node_at_home.ready_since)
        yield Wait(Rule.NOT_CALM, f"its share-manager's node is Ready since {_text(at)}", at, calm)
    last = max(_of_this_start(vm), key=lambda each: (each.created, each.name), default=None)
    if last and last.ours and last.failed:
        at, because = unix_seconds(last.ended), last.state.failure_reason
        seen = f"migration {last.name} failed at {_text(at)}{f': {because}' if because else ''}"
        yield Wait(Rule.FAILED, seen, at, calm)


class _Move(NamedTuple):
    """The migration by which others brought the VM to its node: when it ended, and whether an object says why."""

    at: float
    sentence: str
    explained: bool
    is_update: bool


def _move(vm: VM, arrived: tuple[str, str]) -> _Move:
    """Return what is known of the migration of this uid and name.

    Four things explain it: it left another node than home, it is a workload update, home became Ready later, or it was
    one of a drain of home.
    """
    uid, name = arrived
    migration = next((each for each in vm.migrations if each.metadata.uid == uid or each.name == name), None)
    state = vm.status.migration_state
    own = state if state and state.migration_uid == uid else None  # a later one that failed writes over it
    kept = migration.state if migration else None
    source = (own and own.source_node) or (kept and kept.source_node) or (migration and migration.evacuates)
    ended = (own and own.end_timestamp) or (migration and migration.ended) or vm.row.since
    at, ready = (
        unix_seconds(ended or ""),
        unix_seconds((vm.node_at_home.ready_since if vm.node_at_home else None) or ""),
    )
    is_update = migration is not None and migration.metadata.annotation(ANNOTATION_WORKLOAD_UPDATE) is not None
    explained = bool(source and source != vm.home) or is_update or ready > at > 0 or _is_drain(vm, migration)
    where = f" away from node {source}" if source else ""
    sentence = f"{f'migration {name}' if name else 'a migration'} moved it{where} at {_text(at)}"
    return _Move(at, sentence, explained, is_update)


def _is_drain(vm: VM, migration: Migration | None) -> bool:
    """Whether the migration was one of a drain of home: a drain moves all VMs' pods, a balancer some.

    A descheduler that names itself is none.
    """
    if migration is None or not migration.evacuates or migration.spec.priority == SYSTEM_MAINTENANCE:
        return False
    return not vm.oldest_at_home or vm.oldest_at_home >= migration.created


def _text(seconds: float) -> str:
    return utc_text(seconds) if 0.0 < seconds < inf else "an unknown time"


def _of_this_start(vm: VM) -> list[Migration]:
    return [each for each in vm.migrations if each.is_final and each.created >= vm.started]


def _known_returns(vm: VM) -> int:
    """How often `reunite` has migrated the VM since its start, by the numbers in the names of its migrations."""
    ours = [each for each in vm.migrations if each.ours]
    newest = highest_number(vm.row.name, (each.name for each in ours if each.created >= vm.started))
    before = highest_number(vm.row.name, (each.name for each in ours if each.created < vm.started))
    return max(0, newest - before) if newest else 0


def unix_seconds(text: str) -> float:
    """Return an RFC 3339 time as seconds since 1970; 0 for a text that is not a time."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
