"""`make bench BENCH=cold_starts`: how often a share-manager pod lands on its VM's node.

The bench uses a real kube-apiserver and kube-scheduler, clusters of uneven load, and the same cold starts for each way.
The VMs' pods have a node, then the bench creates the share-manager pods as Longhorn does. README.md beside this file
has the figures. Needs the programs of tests/controlplane/build.py.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from process import cpu_seconds  # noqa: E402
from support.control_plane.control_plane import ControlPlane  # noqa: E402
from support.control_plane.installed import Installed  # noqa: E402
from support.control_plane.kube_api import Api, Object  # noqa: E402
from support.objects import builders  # noqa: E402 - a script finds its neighbours after it has said where they are
from support.scenarios.admitting import until_watched  # noqa: E402

_SIZES: Final = (20, 1_000, 5_000)
_STARTS: Final = 200
_QUICK_SIZES: Final = (110,)
_QUICK_STARTS: Final = 12
_SEED: Final = 6
_WIDTH: Final = 40
_GOAL_PERCENT: Final = 99.0

_IMAGE: Final = builders.share_manager_pod("any")["spec"]["containers"][0]["image"]
_IMAGE_BYTES: Final = 350_000_000
_CPUS: Final = 64
_MEMORY_MIB: Final = 512 * 1024
_LEAST_PERCENT, _MOST_PERCENT = 10, 95  # of a node that its pods request
_WITH_IMAGE: Final = 0.5  # of all nodes, as the next one
_TAINTED: Final = 0.1
_TAINT: Final = "example.com/to-be-replaced:PreferNoSchedule"

_SELECTED: Final = {"labelSelector": "longhorn.io/component=share-manager"}
_PODS: Final = f"/api/v1/namespaces/{builders.LONGHORN_NAMESPACE}/pods"
_PATIENCE_SECONDS: Final = 120
_WRITERS: Final = 4
_STATUS_AT_CREATION: Final = ("Node", "v1"), ("Pod", "v1")


def uneven_nodes(count: int, random: Random) -> Iterator[Object]:
    """So many nodes from nearly empty to nearly full, and the pods that fill them."""
    for number in range(count):
        name = f"node-{number:04}"
        percent = random.randint(_LEAST_PERCENT, _MOST_PERCENT)
        memory = min(_MOST_PERCENT, max(_LEAST_PERCENT, percent + random.randint(-20, 20)))
        taints = [_TAINT] if random.random() < _TAINTED else []
        node = builders.node(name, taints=taints, labels={"topology.kubernetes.io/zone": f"zone-{number % 3}"})
        amounts = {"cpu": str(_CPUS), "memory": f"{_MEMORY_MIB}Mi", "pods": "250"}
        images = [{"names": [_IMAGE], "sizeBytes": _IMAGE_BYTES}] if random.random() < _WITH_IMAGE else []
        node["status"] |= {"capacity": amounts, "allocatable": dict(amounts), "images": images}
        yield node
        requests = {"cpu": f"{percent * _CPUS * 10}m", "memory": f"{memory * _MEMORY_MIB // 100}Mi"}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"filler-{name}", "namespace": builders.NAMESPACE},
            "spec": {
                "nodeName": name,
                "containers": [{"name": "filler", "image": "none", "resources": {"requests": requests}}],
            },
        }
        yield builders.longhorn_node(name)
        yield builders.instance_manager_pod(name)


def vm_before_its_share_manager(number: int, node: str) -> Iterator[Object]:
    """A VM whose pod has its node, and its volume, whose share-manager pod is about to be created."""
    vm, volume = f"vm-{number:03}", volume_of(number)
    yield builders.persistent_volume_claim(vm, volume_name=volume)
    yield builders.persistent_volume(volume, claim=vm)
    yield builders.share_manager(volume, state="stopped", ownerID="")
    yield builders.volume_attachment(volume, [("csi-attacher", node)])
    pod = builders.vm_pod(vm, node=node, claims=[vm], labels={"vm.kubevirt.io/name": vm})
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "256Mi"}}
    yield pod


def volume_of(number: int) -> str:
    """The name of a VM's volume, as Longhorn draws one."""
    return f"pvc-{number * 2654435761 % 2**32:08x}-6d02-4c3d-9d3e-0123456789ab"


def write(api: Api, objects: Iterable[Object]) -> None:
    """Create them, with their status."""

    def create(described: Object) -> None:
        created = api.create(described)
        if described.get("status") and (described["kind"], described["apiVersion"]) not in _STATUS_AT_CREATION:
            api.replace_status({**created, "status": described["status"]})

    with ThreadPoolExecutor(_WRITERS) as writers:
        list(writers.map(create, objects))


def measure(plane: ControlPlane, what: str, nodes: Sequence[str], *, goal: bool = False) -> None:
    """One row: create a share-manager pod for each VM, wait for the scheduler's verdict on each, and delete them."""
    assert plane.scheduler, "a control plane without a scheduler"
    pods = [builders.share_manager_pod(volume_of(number), phase=None) for number in range(len(nodes))]
    began = cpu_seconds(plane.scheduler.pid)
    with ThreadPoolExecutor(_WRITERS) as writers:
        names = [stored["metadata"]["name"] for stored in writers.map(plane.api.create, pods)]
    bound = _until_judged(plane.api, set(names))
    cpu_ms = (cpu_seconds(plane.scheduler.pid) - began) * 1e3 / len(nodes)
    plane.api.call("DELETE", _PODS, None, {"gracePeriodSeconds": "0", **_SELECTED})
    on_target = 100 * sum(bound[name] == node for name, node in zip(names, nodes, strict=True)) / len(nodes)
    pending = sum(node is None for node in bound.values())
    met = "met" if on_target >= _GOAL_PERCENT and not pending else "NOT MET"
    judged = f"  goal >= {_GOAL_PERCENT:g} %, 0 Pending: {met}" if goal else ""
    _say(f"{what:{_WIDTH}}{on_target:13.1f}{pending:9}{cpu_ms:8.2f}{judged}")


def _until_judged(api: Api, names: set[str]) -> dict[str, str | None]:
    """The node of each pod; None for a pod that fits nowhere."""
    found: dict[str, str | None] = {}
    for pod in _seen(api):
        node = pod["spec"].get("nodeName")
        conditions = pod["status"].get("conditions", ())
        if node or any((each["type"], each["status"]) == ("PodScheduled", "False") for each in conditions):
            found[pod["metadata"]["name"]] = node
        if found.keys() == names:
            return found
    raise AssertionError(f"no verdict in {_PATIENCE_SECONDS} s on {len(names - found.keys())} pods")


def _seen(api: Api) -> Iterator[Object]:
    """The pods, and each change of one: an API server ends the watch of somebody who is slow."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (left := int(deadline - time.monotonic())) > 0:
        there = api.call("GET", _PODS, None, _SELECTED).body
        yield from there["items"]
        since = {"resourceVersion": there["metadata"]["resourceVersion"], **_SELECTED}
        with closing(api.watch("v1", "Pod", builders.LONGHORN_NAMESPACE, seconds=left, **since)) as events:
            yield from (event["object"] for event in events if event["type"] != "ERROR")


@contextmanager
def webhook(installed: Installed, *flags: str, unwatched: Sequence[str] = ()) -> Iterator[None]:
    """The API server calls `serve`, whose caches are whole; at the end no call may have failed open."""
    with installed.serving(*flags) as server:
        until_watched(server, unwatched=unwatched)
        installed.enable()
        installed.until_called()
        yield
        installed.disable()
    assert installed.plane.api.metric("apiserver_admission_webhook_fail_open_count") == 0, "calls failed open"


def measure_cluster(size: int, count: int) -> None:
    """All rows of one cluster."""
    random = Random(_SEED)  # noqa: S311 - no secret: the same cluster each time
    cluster = list(uneven_nodes(size, random))
    names = [each["metadata"]["name"] for each in cluster if each["kind"] == "Node" and each["apiVersion"] == "v1"]
    nodes = random.choices(names, k=count)
    vms = (each for number, node in enumerate(nodes) for each in vm_before_its_share_manager(number, node))
    with TemporaryDirectory() as directory, ControlPlane(Path(directory)) as plane:
        installed = Installed(plane, Path(directory))
        write(plane.api, cluster)
        write(plane.api, vms)
        _say(f"\n{size:,} nodes, {count} cold starts")
        _say(f"{'':{_WIDTH}}{'on target, %':>13}{'Pending':>9}{'CPU ms':>8}")
        measure(plane, "nothing", nodes)
        with webhook(installed, "--shortlist=off", unwatched=("cluster-autoscaler-status",)):
            measure(plane, "the webhook, without its short list", nodes)
        with webhook(installed):
            measure(plane, "the webhook", nodes, goal=True)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()  # a long run should say what it does


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs: the figures mean nothing")
    sizes, count = (_QUICK_SIZES, _QUICK_STARTS) if parser.parse_args().quick else (_SIZES, _STARTS)
    for size in sizes:
        measure_cluster(size, count)


if __name__ == "__main__":
    main()
