"""A run of `reunite` on a cluster that was read, with a writer whose answers a test chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from support.drivers.status_runs import instance
from support.fakes.views import cluster
from support.objects.reunite_vms import DEFAULTS, ago
from support.scenarios.vm_scenes import scenes

from webhook.core.observe.events import Event
from webhook.objects.cluster import Cluster
from webhook.reunite.reports import EventReason
from webhook.reunite.run import ReuniteRun
from webhook.reunite.settings import ReuniteSettings
from webhook.reunite.waits import unix_seconds
from webhook.reunite.writer import Result, Writer, Written

NOW: Final = unix_seconds("2026-11-22T12:00:00Z")
KUBEVIRT: Final = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "KubeVirt",
    "metadata": {"name": "kubevirt", "namespace": "kubevirt"},
    "status": {"phase": "Deployed", "observedKubeVirtVersion": "v1.8.0"},
}
MIGRATION: Final = "moved-reunite-1"
MOVES: Final = f"migration {MIGRATION}: from node node-b to node node-a, that of its share-manager"
FORBID: Final = (
    "; to forbid it: kubectl annotate virtualmachine moved -n vms --overwrite kubevirt-scheduler/reunite=false"
)
Object = dict[str, Any]


class Answering(Writer):
    """A writer whose requests get these answers. `asked` has each request."""

    def __init__(self, answer: Written = Written(Result.DONE)) -> None:  # noqa: B008 - frozen
        self.answer = answer
        self.asked: list[str] = []
        self.events: list[Event] = []

    async def create(self, namespace: str, migration: Mapping[str, Any]) -> Written:
        """As the API server."""
        self.asked.append(f"create {namespace}/{migration['metadata']['name']}")
        return self.answer

    async def write_event(self, event: Event, at: float) -> Written:
        """As the API server."""
        assert at > 0
        self.events.append(event)
        return self.answer


def vmi(name: str = "moved", **status: Any) -> Object:
    """A VirtualMachineInstance that runs and can be migrated."""
    made = instance(name)
    made["metadata"]["uid"] = f"uid-{name}"
    made["status"] |= {"phase": "Running", **status}
    return made


def of(*objects: Object) -> Cluster:
    """The cluster of these objects; of two with one name the later one."""
    last = {(each["apiVersion"], each["kind"], each["metadata"]["name"]): each for each in objects}
    return cluster(*last.values())


def moved(*more: Object) -> Cluster:
    """The scenes, in which VM `moved` is apart."""
    return of(*scenes(), vmi(), KUBEVIRT, *more)


def went(found: Cluster, writer: Writer | None = None, *, now: float = NOW, **settings: Any) -> ReuniteRun:
    """One run."""
    run = ReuniteRun(
        found, ReuniteSettings(**{**DEFAULTS, "dry_run": "none" if writer else "client", **settings}), now, writer
    )
    asyncio.run(run.decide("files"))
    return run


Told = tuple[str, EventReason, str]


def told(run: ReuniteRun) -> list[Told]:
    """Of each report: the VM, the reason, the message."""
    return [(each.row.name, each.reason, each.message) for each in run.reports]


def event(
    message: str,
    seconds: float,
    reason: EventReason = EventReason.STARTED,
    vm: str = "moved",
    uid: str = "",
    *,
    namespace: str = "vms",
) -> Object:
    """An Event that an earlier run wrote on the VMI of this name; `uid` if it was another VMI."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"e-{seconds}", "namespace": namespace},
        "involvedObject": {
            "kind": "VirtualMachineInstance",
            "namespace": namespace,
            "name": vm,
            "uid": uid or f"uid-{vm}",
        },
        "reason": reason.code,
        "message": message,
        "lastTimestamp": ago(seconds, NOW),
    }
