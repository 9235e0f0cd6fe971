"""Memory: what caches keep of hostile objects of every kind, written again and again, and after they are deleted.

`tracemalloc` counts every byte that Python holds. A walk over records and indexes finds what they keep.
"""

from __future__ import annotations

import gc
import random
import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
import pytest
from support.models.model_api import bookmark, event
from support.objects.builders import Object

from webhook.core.api.affinity import _is_dns_subdomain
from webhook.core.api.container import _amount
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER, VMI_KIND, is_kubevirts
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH, ANNOTATION_CO_SCHEDULE, LABEL_CO_SCHEDULE
from webhook.core.view import Kind
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.informer.store import Resource
from webhook.kube.kinds import resources
from webhook.kube.records.virt_launchers import _component, _on_node, _recorded

pytestmark = pytest.mark.slow

WATCHED: Final = [each for each in resources("longhorn-system") if each.watched]
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
NAMES: Final = 4
WRITES: Final = 16
SLACK_BYTES: Final = 64 * 1024
"""Free lists of Python, and tables that were larger."""
REMEMBERED: Final = (_is_dns_subdomain, _amount, is_kubevirts, _component, _recorded, _on_node)


class Hostile:
    """Objects whose texts and lists have random lengths; about one in three is long."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a test's objects

    def text(self) -> str:
        """A text that nobody has written before."""
        chars = self._random.choice((3, 40, 300, 80_000))
        return f"{self._random.getrandbits(64):x}" + "x" * chars

    def texts(self) -> list[str]:
        """Up to 600 short texts."""
        prefix = f"{self._random.getrandbits(32):x}"
        return [f"{prefix}-{each}" for each in range(self._random.choice((0, 1, 8, 600)))]

    def mapping(self) -> dict[str, str]:
        """Up to 600 keys, with values."""
        return {each: each for each in self.texts()}

    def metadata(self) -> Object:
        """Metadata with annotations that are read, and others."""
        words = (ANNOTATION_CO_SCHEDULE, ANNOTATION_APPLIED_PATCH)
        return {
            "uid": self.text(),
            "labels": self.mapping() | {LABEL_CO_SCHEDULE: self.text(), LABEL_APP: VIRT_LAUNCHER},
            "annotations": {each: self.text() for each in words},
            "ownerReferences": [{"kind": VMI_KIND, "name": self.text(), "uid": self.text()}]
            * self._random.choice((0, 1)),
        }

    def requirements(self) -> list[Object]:
        """Requirements with many values."""
        return [{"key": self.text(), "operator": "In", "values": self.texts()}]

    def affinity(self) -> Object:
        """Rules about nodes and pods."""
        names = [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [each]}]} for each in self.texts()
        ]
        term = {
            "labelSelector": {"matchExpressions": self.requirements(), "matchLabels": self.mapping()},
            "namespaces": self.texts(),
            "topologyKey": self.text(),
        }
        return {
            "nodeAffinity": {PREFERRED: [{"weight": 1, "preference": each} for each in names]},
            "podAntiAffinity": {REQUIRED: [term]},
        }

    def quantities(self) -> Object:
        """Requests of many resources."""
        return {f"example.com/{each}": "1" for each in self.texts()} | {"cpu": self.text()[:80]}

    def spec(self) -> Object:
        """Everything that any kind has in its spec."""
        claims = [
            {"name": each, "persistentVolumeClaim": {"claimName": each + self.text()}} for each in self.texts()[:300]
        ]
        vmi = {
            "volumes": claims,
            "domain": {"devices": {"disks": [{"name": each, "cdrom": {}} for each in self.texts()]}},
        }
        ports = [{"containerPort": each, "hostPort": each} for each in range(1, self._random.choice((1, 2_000)) + 1)]
        return {
            "nodeName": self._random.choice((None, self.text()[:253])),
            "schedulerName": self.text(),
            "nodeSelector": self.mapping(),
            "affinity": self.affinity(),
            "containers": [{"name": self.text(), "resources": {"requests": self.quantities()}, "ports": ports}],
            "volumes": claims,
            "accessModes": self.texts(),
            "volumeName": self.text(),
            "template": {"metadata": self.metadata(), "spec": vmi},
            "domain": vmi["domain"],
            "csi": {
                "driver": "driver.longhorn.io",
                "volumeHandle": self.text(),
                "volumeAttributes": {"migratable": self.text()},
            },
            "claimRef": {"namespace": "vms", "name": self.text()},
            "drivers": [{"name": each, "nodeID": each, "topologyKeys": None} for each in self.texts()],
            "taints": [{"key": each, "effect": "NoSchedule"} for each in self.texts()],
        }

    def status(self) -> Object:
        """Everything that any kind has in its status."""
        scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": self.text()}
        return {
            "phase": "Pending",
            "ownerID": self.text(),
            "state": self.text(),
            "allocatable": self.quantities(),
            "conditions": [{"type": "Ready", "status": "True"}, *self._random.choice(([], [scheduled]))],
        }

    def written(self, resource: Resource, name: str) -> Object:
        """An object of this kind."""
        spec, status = self.spec(), self.status()
        if resource.kind is Kind.VIRTUAL_MACHINE_INSTANCE or resource.kind is Kind.VIRTUAL_MACHINE:
            spec["volumes"] = spec["template"]["spec"]["volumes"]
        return {"metadata": {**self.metadata(), "name": name, "namespace": "vms"}, "spec": spec, "status": status}


class Fed:
    """A cache that gets events."""

    def __init__(self, resource: Resource) -> None:
        self.cache = ListWatch(resource, random=lambda: 0.5)
        self._version = 10
        self.cache.next(0.0)
        self.cache.opened(200, None, 0.0)
        self.cache.feed(bookmark(self._version, end=True), 0.0)
        self.cache.ended(0.0)
        self.cache.next(1.0)
        self.cache.opened(200, None, 1.0)

    def line(self, type_: str, described: Object) -> bytes:
        """Return the next event."""
        self._version += 1
        described["metadata"]["resourceVersion"] = str(self._version)
        return event(type_, described)

    def tell(self, lines: Iterable[bytes]) -> None:
        """Tell these events."""
        for line in lines:
            assert self.cache.feed(line, 2.0), self.cache.problem


def kept(cache: ListWatch) -> int:
    """Return the bytes of what the records and their index keep, each object once."""
    seen: set[int] = set()
    todo: list[Any] = [cache.objects, cache.index]
    found = 0
    while todo:
        each = todo.pop()
        if each is None or isinstance(each, (type, Kind)) or callable(each) or id(each) in seen:
            continue
        seen.add(id(each))
        found += sys.getsizeof(each)
        todo.extend(_within(each))
    return found


def _within(each: Any) -> Iterator[Any]:
    if isinstance(each, msgspec.Struct):
        yield from (getattr(each, name) for name in each.__struct_fields__)
    elif isinstance(each, dict):
        yield from each
        yield from each.values()
    elif isinstance(each, (list, tuple, set, frozenset)):
        yield from each
    else:
        yield from getattr(each, "__dict__", {}).values()
        yield from (getattr(each, name, None) for name in getattr(type(each), "__slots__", ()))


def held() -> int:
    """Return the bytes that Python holds, without the answers about short texts, whose number is bounded."""
    for remembered in REMEMBERED:
        remembered.cache_clear()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("resource", WATCHED, ids=lambda each: str(each.kind))
def test_a_cache_holds_what_its_records_keep_and_nothing_of_what_was_before(resource: Resource, seed: int) -> None:
    """Twice as much at most, beside a fixed number of bytes: for the keys of the shared parts, and the tables."""
    hostile, fed = Hostile(seed), Fed(resource)
    names = [f"stranger-{each}" for each in range(NAMES)]
    objects = [hostile.written(resource, names[each % NAMES]) for each in range(WRITES)]
    gone = [{"metadata": {"name": name, "namespace": "vms"}} for name in names]
    rounds = [
        ([fed.line("MODIFIED", each) for each in objects], [fed.line("DELETED", each) for each in gone])
        for _ in range(3)
    ]
    found = []
    gc.freeze()  # what was there before is not looked at again
    tracemalloc.start()
    try:
        for written, deleted in rounds:  # in the first one the table of interned texts grows
            before = held()
            fed.tell(written)
            after, records = held() - before, kept(fed.cache)
            assert len(fed.cache.objects) > fed.cache.unreadable == 0
            fed.tell(deleted)
            found.append((after - 2 * records, held() - before))
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    # Python makes that table larger once in a while, and not in both of the other rounds.
    beyond, left = (min(each) for each in zip(*found[1:], strict=True))
    assert beyond <= SLACK_BYTES, f"{beyond:,} bytes beyond twice the records"
    assert left <= SLACK_BYTES, f"{left:,} bytes are left"
