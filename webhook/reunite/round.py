"""One round: what the rules say of a Situation, with the target nodes that `plan` has evaluated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from webhook.core.api.kubevirt import HOSTNAME
from webhook.core.observe.vm_status import VMStatus
from webhook.core.reunite.decide import VM, CreateMigration, Plan, Situation, decide
from webhook.core.reunite.migration import migration_object
from webhook.core.reunite.not_yet import NotYet, Rule
from webhook.plan.step import Step

StepOf = Callable[[VMStatus], Awaitable[Step]]


class Round(Struct, frozen=True, kw_only=True):
    """The plan of one round. `hostnames`: the label kubernetes.io/hostname of each target, by namespace and VM."""

    plan: Plan
    hostnames: Mapping[tuple[str, str], str]

    def migration_of(self, action: CreateMigration) -> dict[str, Any]:
        """Return the migration to create, as JSON."""
        row = action.vm.row
        hostname = self.hostnames[row.namespace, row.name]
        return migration_object(row.namespace, row.name, hostname, name=action.name, moved_away=action.moved_away)


async def plan_round(situation: Situation, step_of: StepOf) -> Round:
    """Return the round. `step_of` is asked about each VM that all other rules let through."""
    hostnames: dict[tuple[str, str], str] = {}
    rules, answer = decide(situation), None
    try:
        vm = next(rules)
        while True:
            answer = await _why_not_there(vm, step_of, hostnames)
            vm = rules.send(answer)
    except StopIteration as end:
        plan: Plan = end.value
        return Round(plan=plan, hostnames=hostnames)


async def _why_not_there(vm: VM, step_of: StepOf, hostnames: dict[tuple[str, str], str]) -> NotYet | None:
    step = await step_of(vm.row)
    if step.migration is None:
        return Rule.NOT_PLACEABLE.says_no(because=step.refusal)
    hostnames[vm.row.namespace, vm.row.name] = step.migration["spec"]["addedNodeSelector"][HOSTNAME]
    return None
