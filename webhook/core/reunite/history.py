"""What the migrations of one VM say about its past, since its last start.

KubeVirt keeps the last five final migrations of a VM (migration.go, garbageCollectFinalizedMigrations). So a migration
of ours carries the count of the time before it (migration.ANNOTATION_MOVED_AWAY). Without one a count is a lower bound.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from webhook.core.reunite.migration import Migration

FINAL_MIGRATIONS: Final = 5  # final migrations of a VM, by KubeVirt


class History(Struct, frozen=True, kw_only=True):
    """What happened to one VM since its start.

    Attributes:
        running: a migration that is not final. One from before the start counts, because KubeVirt counts it.
        named: a migration of somebody else that named its target, and did not fail.
        arrived: when the last successful migration of anybody ended (RFC 3339): the VM is on its node since then.
        evicted: when that migration ended, if it was an eviction by a descheduler, as far as is known.
        came_home: the last successful migration of ours.
        failures: failed migrations of ours in a row, without a success after them, oldest first.
        moved_away: how often others moved the VM away after it came home, for another cause than a drain or an update.
        no_reason: whether KubeVirt did not say why it made the last of these.
        known_since: when the oldest migration that KubeVirt keeps was created, if KubeVirt can have deleted others of
            this start; None if all of this start are here.
    """

    running: Migration | None
    named: Migration | None
    arrived: str | None
    evicted: str | None
    came_home: Migration | None
    failures: tuple[Migration, ...]
    moved_away: int
    no_reason: bool
    known_since: str | None


def history_of(migrations: Iterable[Migration], started: str, drained: Container[str] = ()) -> History:
    """Return what these migrations of one VM say.

    `started`: when its VMI was created (RFC 3339). `drained`: the uids of `drains.drained`.
    """
    by_age = sorted(migrations, key=_age)
    since = [migration for migration in by_age if migration.created >= started]
    final = [migration for migration in since if migration.is_final]
    ours = [migration for migration in final if migration.ours]
    came_home = next((migration for migration in reversed(ours) if migration.succeeded), None)
    arrived = next((migration for migration in reversed(final) if migration.succeeded), None)
    moved_away, last = _moved_away(since, drained)
    return History(
        running=next((migration for migration in by_age if not migration.is_final), None),
        named=next((migration for migration in reversed(since) if _is_a_will(migration)), None),
        arrived=arrived.ended_or_created if arrived else None,
        evicted=arrived.ended_or_created if arrived and arrived.evacuates and _is_away(arrived, drained) else None,
        came_home=came_home,
        failures=tuple(
            migration
            for migration in ours
            if migration.failed and (came_home is None or _age(migration) > _age(came_home))
        ),
        moved_away=moved_away,
        no_reason=last is not None and last.has_no_reason,
        known_since=final[0].created if len(final) >= FINAL_MIGRATIONS else None,
    )


def unix_seconds(text: str) -> float:
    """Return an RFC 3339 time as seconds since 1970; 0 for a text that is not a time."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _age(migration: Migration) -> tuple[str, str]:
    return migration.created, migration.name


def _is_a_will(migration: Migration) -> bool:
    return migration.names_target and not migration.ours and not migration.failed


def _is_away(migration: Migration, drained: Container[str]) -> bool:
    return not (migration.ours or migration.is_for_upkeep or migration.uid in drained)


def _moved_away(since: Iterable[Migration], drained: Container[str]) -> tuple[int, Migration | None]:
    """Count the moves away after a homecoming: the first successful migration of others after one of ours.

    A drain or an update does not count, because the VM may come home after it. Return also the last move that counts.
    What a migration of ours says replaces the count, because more was known when it was created (drains.drained).
    """
    count, last, is_home = 0, None, False
    for migration in since:
        if migration.ours and migration.moved_away is not None:
            count = migration.moved_away
        if not migration.succeeded:
            continue
        if is_home and _is_away(migration, drained):
            count, last = count + 1, migration
        is_home = migration.ours
    return count, last
