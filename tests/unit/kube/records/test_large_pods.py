"""A pod with a field of more than PART_BYTES_MAX: what a watch reads of it, and how it counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from time import thread_time
from typing import Any, Final

import msgspec
import pytest
from msgspec import Raw, Struct
from support.fakes.watching import Driver, lists
from support.models.cached_pods import RESOURCE, made_of, pod, seen, vm
from support.models.model_api import event, page
from support.models.one_node import OneNodeSnapshot
from support.objects import builders
from support.objects.builders import Object
from support.objects.hostile_pods import preferring, repelling, with_labels, with_ports

from webhook.core.api.affinity import MAX_TERMS
from webhook.core.api.node import Node
from webhook.core.pod_limits import CONTAINERS_MAX, PART_BYTES_MAX, PATCH_BYTES_MAX, why_field_too_long
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import excluding, why_excluded
from webhook.core.scheduler.pod_info import PARTS_NOT_READ, TERMS_NOT_READ
from webhook.kube.records.pods import WirePod
from webhook.kube.wire import Decoders, NotJSON, WatchEvent

PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
LONG: Final = "x" * PART_BYTES_MAX


def with_containers(described: Object, **of_each: Any) -> Object:
    """The pod with as many containers as a VM's pod can have."""
    described["spec"]["containers"] += [{"name": f"c-{each}", **of_each} for each in range(CONTAINERS_MAX - 1)]
    return described


def left_out(described: Object) -> list[str] | None:
    """Return the fields of a pod that are not read."""
    body = json.dumps(described, separators=(",", ":")).encode()
    wire: Any = Decoders(RESOURCE.wire, RESOURCE.large).object(body)
    assert isinstance(wire, WirePod)
    return wire.not_compared


FIELDS: Final[dict[str, tuple[Object, list[str]]]] = {
    "none": (pod("a", node="n1"), []),
    "an annotation": (builders.vm_pod("a", annotations={"x": LONG}), []),
    "arguments of containers": (with_containers(pod("a", node="n1"), args=[LONG[:1000]]), []),
    "labels": (with_labels(pod("a", node="n1"), 9_000), ["metadata.labels"]),
    "preferred nodes": (pod("a", affinity=preferring(2_000)), ["spec.affinity.nodeAffinity"]),
    "values of anti-affinity": (pod("a", node="n1", affinity=repelling(9_000)), ["spec.affinity.podAntiAffinity"]),
    "preferred anti-affinity": (pod("a", affinity={"podAntiAffinity": {PREFERRED: [{"weight": 1, "x": LONG}]}}), []),
    "host ports": (with_ports(pod("a", node="n1")), []),
    "containers": (with_containers(with_containers(pod("a", node="n1"), args=["x" * 120])), ["spec.containers"]),
}


@pytest.mark.parametrize(("described", "fields"), FIELDS.values(), ids=FIELDS)
def test_a_long_field_is_left_out_and_named(described: Object, fields: list[str]) -> None:
    """Whatever else the pod has stays. A field is as long as it is read: not by what is skipped in it."""
    assert (left_out(described) or []) == fields
    read = seen(described)
    assert {each.namespace for each in read.pod_infos} <= {described["metadata"].get("namespace", "")}


@pytest.mark.parametrize("where", ["metadata", "spec"])
def test_a_long_pod_of_another_form_is_unreadable(where: str) -> None:
    """As a short one is. Its event says which pod it is."""
    described = pod("a", node="n1", affinity=repelling(9_000))
    described["metadata"] |= {"resourceVersion": "5", "annotations": {"x": LONG}}
    described[where]["labels" if where == "metadata" else "affinity"] = ["x"]
    decoders = Decoders(RESOURCE.wire, RESOURCE.large)
    found = decoders.event(event("ADDED", described))
    assert isinstance(found, WatchEvent)
    assert (found.object, found.meta.name) == (None, "a")
    assert isinstance(decoders.object(json.dumps(described).encode()), NotJSON)


def reasons(snapshot: OneNodeSnapshot) -> list[Reason | None]:
    """Return why n1 and n2 are not required for a pod, as far as other pods exclude it."""
    found = excluding("vms", {"app": "db"}, snapshot)
    assert not isinstance(found, Why)
    whys = (why_excluded(found, snapshot.node_info(name)) for name in ("n1", "n2"))
    return [why.reason if why else None for why in whys]


def snapshot_of(*described: Object) -> OneNodeSnapshot:
    """Return two nodes with these pods."""
    nodes = {name: msgspec.convert(builders.node(name), Node) for name in ("n1", "n2")}
    pods = {str(key): each for key, each in enumerate(described)}
    return OneNodeSnapshot(scheduler_cache=made_of(pods, {}), nodes=nodes)


def test_a_bound_pod_with_a_long_field_takes_its_requests_and_its_node_is_not_required() -> None:
    """What the pod excludes from the node is not known. Another node is as it was."""
    described = with_labels(pod("a", node="n1", cpu="250m"), 9_000)
    (found,) = seen(described).pod_infos
    assert found.anti_affinity is PARTS_NOT_READ
    snapshot = snapshot_of(described)
    assert snapshot.node_info("n1").requested.amounts == {"cpu": 250}
    assert reasons(snapshot) == [Reason.POD_NOT_COMPARED, None]


def test_while_a_bound_pods_terms_are_not_known_no_node_is_required() -> None:
    """They can be over a zone, and about any pod. After the pod is gone all is as before."""
    (found,) = seen(pod("a", node="n1", affinity=repelling(9_000))).pod_infos
    assert found.anti_affinity is TERMS_NOT_READ
    snapshot = snapshot_of()
    snapshot.scheduler_cache.add(found)
    assert reasons(snapshot) == [Reason.POD_NOT_COMPARED, Reason.POD_NOT_COMPARED]
    snapshot.scheduler_cache.remove(found)
    assert reasons(snapshot) == [None, None]


def test_a_pod_for_which_a_node_was_required_is_read_whole() -> None:
    """The longest affinity that an asked pod may have, with the most that the webhook adds to it."""
    for length, asked, watched in (
        (PART_BYTES_MAX, True, True),
        (PART_BYTES_MAX + 1, False, True),
        (PART_BYTES_MAX + PATCH_BYTES_MAX, False, True),
        (PART_BYTES_MAX + PATCH_BYTES_MAX + 1, False, False),
    ):
        described = json.dumps(pod("a", affinity={"nodeAffinity": {"x": "AFFINITY"}}), separators=(",", ":"))
        body = described.replace("AFFINITY", "y" * (length - len('{"x":""}'))).encode()
        assert (why_field_too_long(body) is None) == asked
        assert (left_out(json.loads(body)) == ["spec.affinity.nodeAffinity"]) != watched


@pytest.mark.parametrize("node", ["node-a", None])
def test_what_is_read_of_a_short_pod_is_read_of_a_long_one(node: str | None) -> None:
    """Bytes in a field that nothing reads change nothing of what is stored."""
    described = builders.vm_pod("1", node=node, claims=["disk"], created="2026-01-01T00:00:00Z", deleting=True)
    requests = {"resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}}
    described["metadata"]["annotations"] = builders.recorded("preferred", "node-a")
    described["spec"] |= {
        "schedulerName": "other",
        "nodeSelector": {"example.com/rack": "4"},
        "affinity": builders.node_affinity(required=[builders.on_node("node-a")]),
        "containers": [{"name": "main", **requests}],
        "initContainers": [{"name": "sidecar", "restartPolicy": "Always", **requests}],
        "overhead": {"memory": "1Mi"},
        "resources": {"requests": {"cpu": "2"}},
    }
    described["status"] = {"phase": "Pending", "nominatedNodeName": "node-b"}
    short, long = (seen({**described, "spec": {**described["spec"], "hostname": text}}) for text in ("", LONG))
    assert short.pod_infos
    assert long == short


@pytest.mark.parametrize(("names", "nodes"), [(MAX_TERMS, MAX_TERMS), (MAX_TERMS + 1, 0)])
def test_an_unbound_pod_counts_on_as_many_nodes_as_the_webhook_names(names: int, nodes: int) -> None:
    """A pod that prefers more nodes is somebody else's, and each node costs memory."""
    assert len(seen(vm("a", affinity=preferring(names))).pod_infos) == nodes


class _Skipped(Struct):
    object: Raw


HOSTILE: Final[dict[str, Callable[[], Object]]] = {
    "30,000 preferred nodes": lambda: pod("a", affinity=preferring(30_000)),
    "100,000 labels": lambda: with_labels(pod("a", node="n1"), 100_000),
    "100,000 values of anti-affinity": lambda: pod("a", node="n1", affinity=repelling(100_000)),
    "10,000 host ports": lambda: with_ports(pod("a", node="n1")),
    "an annotation of 256 KiB that JSON escapes": lambda: builders.vm_pod("a", annotations={"x": "\1" * 2**18}),
}


@pytest.mark.parametrize("made", HOSTILE.values(), ids=HOSTILE)
def test_an_update_holds_the_event_loop_for_as_long_as_its_bytes_take(made: Callable[[], Object]) -> None:
    """Its line is copied and skipped a few times, and no field is decoded. To decode it takes ten times as long."""
    described = made()
    described["metadata"] |= {"resourceVersion": "50", "namespace": "vms", "name": "a"}
    line, driver = event("ADDED", described), Driver(resource=RESOURCE)
    driver.play(lists())
    driver.ask()
    driver.machine.opened(200, None, driver.now)
    skip = msgspec.json.Decoder(_Skipped)
    calls = (lambda: skip.decode(line), lambda: driver.machine.feed(line, driver.now))
    # The least of twenty, in turns: what else the machine does slows both down.
    skipped, taken = map(min, zip(*(map(_taken, calls) for _ in range(20)), strict=True))
    assert "vms/a" in driver.machine.objects
    assert taken <= 8 * skipped + 0.001, f"{taken * 1e3:.1f} ms; the bytes alone {skipped * 1e3:.1f} ms"


def _taken(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    began = thread_time()
    call()
    return thread_time() - began


def test_a_page_and_an_event_leave_out_the_same() -> None:
    """A watch is not the only way to a pod."""
    described = pod("a", node="n1", affinity=repelling(9_000))
    described["metadata"]["resourceVersion"] = "5"
    decoders = Decoders(RESOURCE.wire, RESOURCE.large)
    event_ = decoders.event(event("ADDED", described))
    listed = decoders.page(page([described], 5))
    assert isinstance(event_, WatchEvent)
    assert not isinstance(listed, NotJSON)
    assert event_.object.not_compared == listed.items[0].not_compared == ["spec.affinity.podAntiAffinity"]
