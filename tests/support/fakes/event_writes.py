"""An API server that takes Events, an EventRecorder that writes to it, and the answers that it records."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import replace
from support.drivers.serving import cluster as described
from support.fakes.api_server import Cluster
from support.fakes.http_line import Asked, Line
from support.fakes.views import cluster as cluster_view
from support.objects import builders
from support.objects.builders_kubevirt import API_VERSION, vm_of
from support.waits import MAX_WAIT_SECONDS

from webhook.component_base.client.api import Api
from webhook.core.admit import Answer, Entry, admit
from webhook.core.api.meta import UID_MAX_CHARS
from webhook.core.observe.events import Outcome
from webhook.core.opt_in import Policy
from webhook.kube.events import DEFAULT_EVENT_LIMITS, EventLimits, EventRecorder
from webhook.objects.cluster import Cluster as DescribedCluster
from webhook.objects.documents import read_documents
from webhook.objects.files import read_objects

PATH: Final = "/api/v1/namespaces/vms/events"
AT: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SWIFT: Final = replace(DEFAULT_EVENT_LIMITS, per_second=1e6, write_seconds=MAX_WAIT_SECONDS)
IMPATIENT: Final = replace(SWIFT, write_seconds=1.0)  # for an API server that does not answer
DROPPED: Final = (Outcome.OVERFLOWED, Outcome.FAILED, Outcome.REFUSED, Outcome.STOPPED)


class Writing:
    """An API server that stores Events. In a `with` block of `fault`, a handler of the test answers instead."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.cluster = Cluster({})
        self.cluster.reply = self._reply  # type: ignore[method-assign] # it stores Events, and nobody reads them
        self.fault = self.cluster.fault

    async def _reply(self, asked: Asked, line: Line) -> None:
        assert (asked.method, asked.path) == ("POST", PATH), asked
        new = json.loads(asked.body)
        self.taken.append(new)
        await line.answer(201, asked.body)


@asynccontextmanager
async def recording(api: Api, limits: EventLimits = SWIFT) -> AsyncIterator[EventRecorder]:
    """Run a recorder that writes Events to this server, until the block ends."""
    events = EventRecorder(api, limits=limits, wall=AT.timestamp)
    task = asyncio.create_task(events.run())
    try:
        yield events
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def answer(vm: str = "db01", **described_pod: Any) -> Answer:
    """The answer about the start pod of a VM of this name."""
    pod = builders.virt_launcher_pod(claims=["disk"], **described_pod)
    pod["metadata"]["ownerReferences"][0] |= {"name": vm, "uid": f"uid-of-{vm}"[:UID_MAX_CHARS]}
    found = admit(json.dumps(builders.review(pod)).encode(), manifests(*vm_of(pod, "vms")), Policy())
    assert isinstance(found, Answer)
    return found


def steered(*vms: str) -> Answer:
    """The answer about the pod of a share-manager whose volume these VMs use, all on one node."""
    objects = [builders.persistent_volume("h", claim="disk"), builders.node("n1")]
    pods = [builders.vm_pod(vm, node="n1", claims=["disk"]) for vm in vms]
    pod = builders.share_manager_pod("h", phase=None)
    review = builders.review(pod, namespace=builders.LONGHORN_NAMESPACE)
    found = admit(json.dumps(review).encode(), cluster_view(*objects, *pods), Policy(), Entry.SHARE_MANAGER)
    assert isinstance(found, Answer)
    return found


def dropped(events: EventRecorder) -> int:
    """Return the number of Events that were given up."""
    return sum(events.counts[each] for each in DROPPED)


async def silent(_: Asked, line: Line) -> None:
    """A fault: the server never answers."""
    await line.silence()


def manifests(*vms: dict[str, Any]) -> DescribedCluster:
    """The cluster of tests/support/drivers/serving.py, with these objects of KubeVirt, if any, for its own."""
    others = (each for each in described() if not vms or each["apiVersion"] != API_VERSION)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*others, *vms]})
    return DescribedCluster(read_objects(read_documents(text, "cluster")), longhorn_namespace="longhorn-system")
