"""MigrationWatch: what the watch of migrations has shown to one process of `reunite`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from simulation.api_server import VMS
from simulation.engine import rfc3339
from simulation.migration import Migration

from webhook.core.api.node import Node
from webhook.core.reunite.drains import drained
from webhook.core.reunite.migration import Migration as SeenMigration

if TYPE_CHECKING:
    from simulation.world import World


class MigrationWatch:
    """The migrations by name, as late as the watch is.

    Attributes:
        seen: the migrations that were shown, by name.
        drained: the uids of those that were drains, as the process has noted them.
        late_seconds: how much later than usual the watch is: a fault.
        edit: changes what is shown: a planted fault.
    """

    def __init__(self, world: World, lag: Callable[[], float]) -> None:
        self.world = world
        self.seen: dict[str, SeenMigration] = {}
        self.drained: frozenset[str] = frozenset()
        self.late_seconds = 0.0
        self.edit: Callable[[SeenMigration], SeenMigration] = lambda seen: seen
        self._lag = lag
        self._queue: deque[tuple[float, str, SeenMigration | None]] = deque()
        world.migrations.listeners.append(self._changed)

    def restart(self) -> None:
        """List what KubeVirt has now, with nothing in memory."""
        self.drained = frozenset()
        self._queue.clear()
        known = [*self.world.migrations.unfinished]
        known += [each for vm in self.world.virt.vms.values() for each in vm.finished]
        self.seen = {each.name: self._seen(each) for each in known}

    def has_arrivals(self, now: float) -> bool:
        """Whether an event has arrived that `sync` has not taken in."""
        return bool(self._queue) and self._queue[0][0] <= now

    def sync(self, now: float) -> None:
        """Take in every event whose time has come."""
        while self.has_arrivals(now):
            _, name, seen = self._queue.popleft()
            if seen is None:
                self.seen.pop(name, None)
            else:
                self.seen[name] = seen

    def note_drains(self, nodes: Mapping[str, Node]) -> None:
        """Note which migrations the nodes, by name, show as drains."""
        self.drained = drained(self.seen.values(), nodes, self.drained)

    def _changed(self, migration: Migration) -> None:
        due = self.world.engine.now + self.late_seconds + self._lag()
        due = max(due, self._queue[-1][0]) if self._queue else due
        self._queue.append((due, migration.name, None if migration.gone else self._seen(migration)))

    def _seen(self, migration: Migration) -> SeenMigration:
        """Return what KubeVirt's object says. It has the two nodes once the migration has ended."""
        seen = SeenMigration(
            namespace=VMS,
            name=migration.name,
            uid=migration.uid,
            vmi=migration.vm.name,
            created=rfc3339(int(migration.created)),
            phase=migration.phase,
            ended=rfc3339(int(migration.ended)) if migration.ended else None,
            ours=migration.by == "reunite",
            names_target=bool(migration.node),
            evacuates=migration.leaves or None,
            source_node=(not migration.unfinished and migration.source) or None,
            target_node=(not migration.unfinished and migration.target_node) or None,
            moved_away=migration.moved_away,
            priority=migration.priority,
        )
        return self.edit(seen)
