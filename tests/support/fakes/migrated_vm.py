"""A cluster with one VM that is apart, for `webhook.reunite.controller`: migrations are admitted as by KubeVirt.

A test can hold back the watch of the migrations.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec.structs import replace
from support.models.model_api import status
from support.objects.reunite_vms import NOW, ago, situation, vm

from webhook.component_base.client.api import Api, Reply
from webhook.component_base.client.errors import ApiError
from webhook.core.observe.events import Event
from webhook.core.observe.vm_status import VMStatus
from webhook.core.reunite.decide import Situation
from webhook.core.reunite.migration import LABEL_REUNITE, Migration, migration_object
from webhook.plan.live_planner import Planner
from webhook.plan.step import Step
from webhook.reunite.controller import Controller
from webhook.reunite.facts import Facts, StaleFacts
from webhook.reunite.reporter import Reporter
from webhook.reunite.writer import MigrationWriter

NO_ANSWER: Final = 0


class Cluster:
    """One cluster, at the time `now`.

    Attributes:
        migrations: what the API server stores, by name.
        shown: what the watch has shown of them; None for all.
        answer: what a write gets in place of KubeVirt's admission: an HTTP status, or NO_ANSWER.
        writes: method and path of each write.
        deleted: the options of each deletion.
        stale: which caches are not up to date.
        refusal: why the node can't take the VM; empty if it can.
        faults: what the next evaluations of the node raise.
        created: set when a migration is stored.
        events: the Events on the VM.
    """

    def __init__(self) -> None:
        self.now = NOW
        self.migrations: dict[str, Migration] = {}
        self.shown: dict[str, Migration] | None = None
        self.answer: int | None = None
        self.writes: list[tuple[str, str]] = []
        self.deleted: list[Mapping[str, Any]] = []
        self.stale: tuple[str, ...] = ()
        self.refusal = ""
        self.faults: list[Exception] = []
        self.created = asyncio.Event()
        self.events: list[Event] = []

    def controller(self, *, dry_run: bool = False) -> tuple[Controller, Reporter]:
        """A process that starts now."""
        reporter = Reporter(self.events.append, lambda _namespace, _name: "uid", dry_run=dry_run)
        writer = None if dry_run else MigrationWriter(cast("Api", self))
        facts, planner = cast("Facts", self), cast("Planner", self)
        return Controller(lambda: planner, facts, reporter, writer, lambda: self.now), reporter

    def ends(self, phase: str) -> None:
        """Every migration ends in this phase."""
        for name, each in self.migrations.items():
            self.migrations[name] = replace(each, phase=phase)

    # The part of Facts that a controller calls.

    async def situation(self, now: float) -> Situation | StaleFacts:
        """As Facts."""
        if self.stale:
            return StaleFacts(self.stale)
        return situation(vm(), *self._seen().values(), now=now)

    def has_migration(self, namespace: str, name: str) -> bool:
        """As Facts."""
        assert namespace == vm().row.namespace
        return name in self._seen()

    def _seen(self) -> dict[str, Migration]:
        return self.migrations if self.shown is None else self.shown

    # The part of Planner.

    async def step(self, row: VMStatus) -> Step:
        """As Planner."""
        if self.faults:
            raise self.faults.pop()
        if self.refusal:
            return Step(row=row, sentences=[], refusal=self.refusal)
        return Step(row=row, sentences=[], migration=migration_object(row.namespace, row.name, "host-node-a"))

    # The part of client.Api.

    async def post(self, path: str, new: Mapping[str, Any], *, seconds: float) -> Reply:
        """Take a migration, unless one of the name exists, or one of the VM is not final."""
        assert seconds > 0
        self.writes.append(("POST", path))
        if self.answer not in (None, NO_ANSWER):
            return _refusal(cast("int", self.answer))
        name = new["metadata"]["name"]
        if name in self.migrations:
            return _refusal(409, f'"{name}" already exists')
        if any(not each.is_final for each in self.migrations.values()):
            return _refusal(403, "in-flight migration detected")
        self.migrations[name] = Migration(
            namespace=new["metadata"]["namespace"],
            name=name,
            uid=f"uid-{name}",
            vmi=new["spec"]["vmiName"],
            created=ago(0, self.now),
            resource_version="7",
            ours=LABEL_REUNITE in new["metadata"]["labels"],
            names_target=True,
        )
        self.created.set()
        if self.answer == NO_ANSWER:
            raise ApiError("no answer in 10 s", silent=True)
        return Reply(201, json.dumps({"metadata": {"uid": f"uid-{name}"}}).encode())

    async def delete(self, path: str, options: Mapping[str, Any], *, seconds: float) -> Reply:
        """Delete a migration."""
        assert seconds > 0
        self.writes.append(("DELETE", path))
        self.deleted.append(options)
        if self.answer is not None:
            return _refusal(self.answer)
        del self.migrations[path.rpartition("/")[2]]
        return Reply(200, b"{}")


def _refusal(code: int, message: str = "refused") -> Reply:
    return Reply(code, json.dumps(status(code, "Forbidden", message)).encode())
