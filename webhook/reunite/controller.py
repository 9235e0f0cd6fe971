"""Controller: a round every ten seconds, and what it says is carried out.

A round begins only when the watch has shown what the round before created, or after a minute. That and the fixed name
of each migration keep the budget of one process, and keep a VM from a second migration of any number of processes. What
is lost by a restart costs at most one try too many, or one too few (docs/decisions.md, 0015).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from webhook.core.reunite.decide import CreateMigration, DeleteMigration, Situation
from webhook.core.reunite.stuck import RestartVM
from webhook.plan.live_planner import Planner
from webhook.reunite.facts import Facts, StaleFacts
from webhook.reunite.reporter import Reporter
from webhook.reunite.round import Round, plan_round
from webhook.reunite.stuck_vms import StuckPlan, StuckVMs
from webhook.reunite.writer import MigrationWriter, Result
from webhook.telemetry.log import failure
from webhook.telemetry.record import LOGGER

PlannerOf = Callable[[], Planner]
Wall = Callable[[], float]
ROUND_SECONDS: Final = 10.0
_WAIT_SECONDS: Final = 1.0  # until a round can begin: the caches, or what the round before created, are on their way
_EXPECTED_SECONDS: Final = 60.0  # a watch that is later than this is not fresh any more


class Controller:
    """Carries out the rounds of one cluster. Without a `writer` it only reports what it would do.

    `planner_of` makes the planner of a round, which keeps what it reads. With `stuck` the controller also restarts VMs
    that are stuck.
    """

    def __init__(  # noqa: PLR0913 - the parts of a round, each replaced by itself in tests
        self,
        planner_of: PlannerOf,
        facts: Facts,
        reporter: Reporter,
        writer: MigrationWriter | None,
        wall: Wall = time.time,
        *,
        stuck: StuckVMs | None = None,
    ) -> None:
        self._planner_of, self._facts, self._reporter, self._writer = planner_of, facts, reporter, writer
        self._wall = wall
        self._stuck = stuck
        self._not_begun: dict[tuple[str, str], float] = {}
        self._expected: dict[tuple[str, str], float] = {}  # namespace and name of a created migration -> until when

    async def run(self, every_seconds: float = ROUND_SECONDS) -> None:
        """Repeat `round` until cancelled. A fault of the program is logged, and the next round begins again."""
        while True:
            seconds = every_seconds
            try:
                if await self.round() is None:
                    seconds = min(seconds, _WAIT_SECONDS)
            except Exception as error:  # noqa: BLE001 - the task supervisor
                LOGGER.error("a round failed", extra={"fields": failure(error)})
            await asyncio.sleep(seconds)

    async def round(self) -> Round | None:
        """Carry out one round. Return it; None if it can't begin yet."""
        situation = await self._facts.situation(self._wall())
        if isinstance(situation, StaleFacts):
            self._reporter.not_known(situation.problems)
            return None
        self._reporter.known()
        self._reporter.ended(situation.migrations)
        stuck = await self._restart_stuck(self._stuck, situation) if self._stuck else StuckPlan()
        if self._is_expecting():
            return None
        situation = replace(situation, not_begun=self._not_begun)
        found = await plan_round(situation, self._planner_of().step)
        self._reporter.rules({**found.plan.waiting, **stuck.waiting})
        await self._carry_out(found)
        return found

    async def _carry_out(self, found: Round) -> None:
        for deleting in found.plan.deletes:
            await self._delete(deleting)
        for creating in found.plan.creates:
            await self._create(creating, found)

    async def _delete(self, action: DeleteMigration) -> None:
        if self._writer is None:
            return
        written = await self._writer.delete(action)
        if written.result is not Result.REFUSED:  # without an answer the migration may be deleted
            self._not_begun[action.migration.namespace, action.migration.vmi] = self._wall()
        if written.result is Result.DONE:
            self._reporter.deleted(action.migration)
        else:
            self._reporter.refused((action.migration.namespace, action.migration.vmi), written.because)

    async def _create(self, action: CreateMigration, found: Round) -> None:
        row = action.vm.row
        key = row.namespace, row.name
        sentence = f"migration {action.name}: from node {row.node} to node {action.target}, that of its share-manager"
        if self._writer is None:
            self._reporter.would(key, f"create {sentence}")
            return
        written = await self._writer.create(row.namespace, found.migration_of(action))
        if written.result is not Result.REFUSED:
            self._expected[row.namespace, action.name] = self._wall() + _EXPECTED_SECONDS
        if written.result is Result.DONE:
            self._reporter.created(key, sentence)
        else:
            self._reporter.refused(key, written.because)

    async def _restart_stuck(self, stuck: StuckVMs, situation: Situation) -> StuckPlan:
        plan = await stuck.plan((vm.row for vm in situation.vms), situation.now)
        for restart in plan.restarts:
            await self._restart(stuck, restart)
        return plan

    async def _restart(self, stuck: StuckVMs, action: RestartVM) -> None:
        key = action.vm.row.namespace, action.vm.row.name
        if self._writer is None:
            self._reporter.would(key, f"restart the VM: {action.sentence}")
        elif problem := await stuck.restart(action):
            self._reporter.not_restarted(key, problem)
        else:
            self._reporter.restarted(key, action.sentence)

    def _is_expecting(self) -> bool:
        """Whether the watch has not shown a migration that an earlier round created."""
        now = self._wall()
        self._expected = {
            name: until
            for name, until in self._expected.items()
            if now < until and not self._facts.has_migration(*name)
        }
        return bool(self._expected)
