"""What the migrations of one VM say about its past, since its last start.

KubeVirt keeps the last five final migrations of a VM. Nothing remembers what happened before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from msgspec import Struct

from webhook.core.api.node import Node
from webhook.core.live_migration.migration import FINAL_MIGRATIONS, Migration


class History(Struct, frozen=True, kw_only=True):
    """What happened to one VM since its start.

    Attributes:
        running: a migration that is not final. One from before the start counts, because KubeVirt counts it.
        arrived: the last successful migration of anybody: the VM is on its node since its end.
        moved_by_others: whether that was neither ours nor a drain nor an update: somebody may want the VM there.
        came_home: the last successful migration of ours.
        moved_again: whether others moved the VM away, `reunite` brought it home, and others moved it away again.
        failures: failed migrations of ours in a row, with no success of anybody after them, oldest first.
        ours: the times at which ours were created (RFC 3339), oldest first.
        known_since: when the oldest migration that KubeVirt keeps was created, if KubeVirt can have deleted others of
            this start; None if all of this start are here.
    """

    running: Migration | None
    arrived: Migration | None
    moved_by_others: bool
    came_home: Migration | None
    moved_again: bool
    failures: tuple[Migration, ...]
    ours: tuple[str, ...]
    known_since: str | None


def history_of(migrations: Iterable[Migration], started: str, nodes: Mapping[str, Node]) -> History:
    """Return what these migrations of one VM say.

    `started`: when its VMI was created (RFC 3339). `nodes`: of the cluster, by name.
    """
    by_age = sorted(migrations, key=lambda each: (each.created, each.name))
    since = [each for each in by_age if each.created >= started]
    final = [each for each in since if each.is_final]
    succeeded = [each for each in final if each.succeeded]
    wanted = [_may_be_wanted(each, nodes) for each in succeeded]
    arrived = succeeded[-1] if succeeded else None
    ours = [each for each in succeeded if each.ours]
    failures: list[Migration] = []
    for each in final:
        if each.succeeded:
            failures = []
        elif each.ours:
            failures.append(each)
    home = succeeded.index(ours[-1]) if ours else -1
    return History(
        running=next((each for each in by_age if not each.is_final), None),
        arrived=arrived,
        moved_by_others=bool(wanted and wanted[-1]),
        came_home=ours[-1] if ours else None,
        moved_again=bool(ours) and any(wanted[:home]) and any(wanted[home + 1 :]),
        failures=tuple(failures),
        ours=tuple(each.created for each in since if each.ours),
        known_since=final[0].created if len(final) >= FINAL_MIGRATIONS else None,
    )


def unix_seconds(text: str) -> float:
    """Return an RFC 3339 time as seconds since 1970; 0 for a text that is not a time."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _may_be_wanted(migration: Migration, nodes: Mapping[str, Node]) -> bool:
    """Whether somebody may want the VM where this migration brought it."""
    return not (migration.ours or migration.is_for_upkeep or _was_a_drain(migration, nodes))


def _was_a_drain(migration: Migration, nodes: Mapping[str, Node]) -> bool:
    """Whether the node that the VM left shows that it was drained, where KubeVirt gave the migration no priority.

    KubeVirt makes the same migration for a drain and for an eviction by a descheduler. The node was cordoned before the
    VM had left, or it was not Ready afterwards. No balancer does either.
    """
    node = nodes.get(migration.evacuates or "")
    if node is None or migration.spec.priority:
        return False
    ended = unix_seconds(migration.ended)
    return 0 < unix_seconds(node.cordoned_since or "") <= ended or unix_seconds(node.ready_since or "") > ended
