"""What it costs to know each node's load: memory of all pods, CPU of their events, and of one question.

    python tests/bench/room.py [--quick]

In one process, without a network: what a cache of pods holds and does, and no more.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from sys import intern
from time import process_time, thread_time
from timeit import Timer
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import msgspec
from msgspec import Struct
from process import resident
from running import Scale, lines
from sample import sample_review
from table import row, title

from webhook.core.api.container import Workload, WorkloadStatus
from webhook.core.scheduler.plugins.node_resources_fit import insufficient_resources
from webhook.core.scheduler.state.node_info import UNLISTED, NodeInfo, NodeRequests, allocatable
from webhook.core.scheduler.state.pod_requests import Usage, is_over, usage

_ALLOCATABLE: Final = {
    "cpu": "95500m",
    "memory": "790000000Ki",
    "ephemeral-storage": "900000000000",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
    "pods": "250",
    "devices.kubevirt.io/kvm": "1k",
    "devices.kubevirt.io/tun": "1k",
    "devices.kubevirt.io/vhost-net": "1k",
}


class _Meta(Struct, gc=False):
    name: str = ""
    namespace: str = ""


class _Spec(Workload, rename="camel", frozen=True, kw_only=True, gc=False):
    node_name: str | None = None


class _WatchedPod(Struct, gc=False):
    metadata: _Meta
    spec: _Spec
    status: WorkloadStatus | None = None


class _Event(Struct, gc=False):
    type: str
    object: _WatchedPod


class _EmptySpec(Struct, gc=False):
    pass


class _Admitted(Struct, gc=False):
    spec: _EmptySpec


class _AdmittedWorkload(Struct, gc=False):
    spec: Workload


class _Kept(Struct, frozen=True, gc=False):
    """What a cache keeps of a pod: its shape is one for all that are equal."""

    node: str
    usage: Usage


class _Pods:
    """A cache of pods, and the load of each node."""

    def __init__(self) -> None:
        self.kept: dict[str, _Kept] = {}
        self.loads: dict[str, NodeRequests] = {}
        self._shapes: dict[Usage, Usage] = {}
        self._event = msgspec.json.Decoder(_Event)

    def take(self, line: bytes) -> None:
        """One event of the watch."""
        event = self._event.decode(line)
        pod, meta = event.object, event.object.metadata
        key = f"{meta.namespace}/{meta.name}"
        before = self.kept.get(key)
        if event.type == "DELETED" or not pod.spec.node_name or is_over(pod.status and pod.status.phase):
            after = None
        else:
            shape = usage(pod.spec, pod.status)
            after = _Kept(intern(pod.spec.node_name or ""), self._shapes.setdefault(shape, shape))
        if before == after:
            return
        if before:
            self.loads[before.node].remove(before.usage)
            del self.kept[key]
        if after:
            self.kept[key] = after
            self.loads.setdefault(after.node, NodeRequests()).add(after.usage)


def _least_us(call: Callable[[], Any], repeats: int, rounds: int = 200) -> float:
    return min(Timer(call, timer=thread_time).repeat(repeats, rounds)) / rounds * 1e6


def _memory(scale: Scale) -> _Pods:
    """All pods, each taken as an event."""
    for line in lines(scale._replace(pods=1000)):  # what the first ones cost the program itself
        _Pods().take(line)
    pods = _Pods()
    gc.collect()
    gc.freeze()
    before, _ = resident()
    began = process_time()
    for line in lines(scale):
        pods.take(line)
    took = process_time() - began
    gc.collect()
    after, _ = resident()
    distinct = len({id(kept.usage) for kept in pods.kept.values()})
    row(f"pods and the load of their nodes, MiB ({distinct} distinct shapes)", after - before, 60)
    row("bytes a pod", (after - before) * 2**20 / scale.pods)
    row("CPU seconds to take all of them, and to write them down first", took)
    return pods


def _events(scale: Scale, pods: _Pods) -> None:
    """A pod that moves from node to node is the dearest event; one that changes in nothing we read is usual."""
    for name, number in (("a VM's pod", 0), ("a web server's", 1)):
        line = next(text for index, text in enumerate(lines(scale)) if index == number)
        gone = line.replace(b"MODIFIED", b"DELETED", 1)

        def move(line: bytes = line, gone: bytes = gone) -> None:
            pods.take(gone)
            pods.take(line)

        same = _least_us(lambda line=line: pods.take(line), scale.repeats)  # type: ignore[misc]
        moved = _least_us(move, scale.repeats) / 2
        row(f"{name} ({len(line)} bytes): event that changes nothing, us", same)
        row(f"{name}: event that counts or discounts it, us", moved)
        row(f"{name}: 1,000 events a second, % of a core", max(same, moved) / 10, 10)


def _questions(scale: Scale, pods: _Pods) -> None:
    body = sample_review()
    admitted = {}
    for name, type_ in (("without", _Admitted), ("with", _AdmittedWorkload)):
        decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
        pod = bytes(msgspec.json.decode(bytes(decoder.decode(body)["request"]), type=dict[str, msgspec.Raw])["object"])
        typed = msgspec.json.Decoder(type_)
        admitted[name] = _least_us(lambda typed=typed, pod=pod: typed.decode(pod), scale.repeats)  # type: ignore[misc]
    row("decode the pod under admission: its containers add, us", admitted["with"] - admitted["without"])
    spec = msgspec.json.decode(pod, type=_AdmittedWorkload).spec
    has = allocatable(_ALLOCATABLE)
    load = next(iter(pods.loads.values()))
    asked = usage(spec)
    assert not list(insufficient_resources(asked, NodeInfo(UNLISTED, has)))
    node = NodeInfo(UNLISTED, has, load)
    row("what it asks for, us", _least_us(lambda: usage(spec), scale.repeats))
    row("has a node room for it, us", _least_us(lambda: next(insufficient_resources(asked, node), None), scale.repeats))


def main() -> None:
    """Measure and print."""
    scale = Scale(3_000, 150, 3) if "--quick" in sys.argv[1:] else Scale(100_000, 5_000, 30)
    title(f"{scale.pods} pods on {scale.nodes} nodes")
    pods = _memory(scale)
    _events(scale, pods)
    _questions(scale, pods)


if __name__ == "__main__":
    main()
