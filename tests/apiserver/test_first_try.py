"""The page docs/first-try.md, command by command, on a real API server and kube-scheduler.

The test plays what the cluster has besides: KubeVirt's and Longhorn's controllers, and the kubelets.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from controlplane import build
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_api import Object
from support.control_plane.rendering import ROOT
from support.control_plane.vm_starts import NODES, Starting
from support.objects import builders, builders_pods
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance
from support.objects.fleets import EARLY, served
from support.scenarios.admitting import until, until_watched

PAGE: Final = ROOT / "docs/first-try.md"
OF_PAGE: Final = "prod-vms"  # the namespace that the page names
HOME: Final = NODES[0]
SEAT, ALL_OF_A_NODE = {"cpu": "2"}, {"cpu": "63"}  # of the 64 that builders give it
DEPLOYMENT: Final[Object] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": NAME, "namespace": NAME},
}
_SHOWN: Final = re.compile(r"```console\n\$ (.*?)\n(.*?)```", re.DOTALL)


class Shown(NamedTuple):
    """A command of the page, and what the page says that it prints; `…` stands for any text."""

    command: str
    output: str

    def missing_from(self, printed: str) -> list[str]:
        """The lines of the page that were not printed; how wide the columns are depends on the names."""
        lines = [" ".join(line.split()) for line in printed.splitlines()]
        patterns = [re.escape(" ".join(line.split())).replace("…", ".*") for line in self.output.splitlines()]
        return [pattern for pattern in patterns if not any(re.search(pattern, line) for line in lines)]


def shown() -> Iterator[Shown]:
    """The commands, in the order of the page."""
    text = PAGE.read_text(encoding="utf-8").replace(OF_PAGE, builders.NAMESPACE)
    yield from (Shown(*each) for each in _SHOWN.findall(text))


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane on which nothing of ours was ever installed."""
    directory = tmp_path / "plane"
    directory.mkdir()
    with ControlPlane(directory) as own:
        for namespace in (builders.LONGHORN_NAMESPACE, builders.NAMESPACE):
            own.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        yield own


class Reader:
    """Who follows the page in a clone, with the rights of an administrator."""

    def __init__(self, plane: ControlPlane, clone: Path) -> None:
        clone.mkdir()
        for folder in ("manifests", "charts"):
            (clone / folder).symlink_to(ROOT / folder)
        self._clone = clone
        path = [str(Path(sys.executable).parent), str(build.kubectl().parent), os.environ["PATH"]]
        kubeconfig = str(plane.kubeconfig(clone / "kubeconfig", plane.admin))
        self._environment = {**os.environ, "PATH": os.pathsep.join(path), "KUBECONFIG": kubeconfig}

    def sees(self, step: Shown) -> None:
        """Run the command: it prints what the page says."""
        done = subprocess.run(  # noqa: S603 - commands of our page
            ["/bin/bash", "-c", step.command],
            cwd=self._clone,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert step.missing_from(done.stdout) == [], f"{step.command}\n{done.stdout}"


def vm(name: str) -> list[Object]:
    """A VM whose share-manager runs on the node HOME."""
    claim, volume = f"{name}-rootdisk", f"pvc-{name}"
    return [
        builders.persistent_volume_claim(claim, volume_name=volume),
        builders.persistent_volume(volume, claim=claim, handle=volume),
        *served(volume, HOME, EARLY),
        virtual_machine(name, [claim]),
        virtual_machine_instance(name, [claim]),
    ]


def launcher(name: str, suffix: str, **described: object) -> Object:
    """The VM's pod."""
    pod = builders.vm_pod(f"{name}-{suffix}", vm=name, claims=[f"{name}-rootdisk"], **described)  # type: ignore[arg-type]
    pod["spec"]["containers"][0]["resources"] = {"requests": SEAT}
    return pod


def runs(plane: ControlPlane, pod: Object) -> None:
    """What the kubelet writes."""
    found = plane.api.get(pod)
    plane.api.replace_status({**found, "status": {**found["status"], "phase": "Running"}})


def has_rolled_out(plane: ControlPlane) -> None:
    """What the Deployment's controller writes when the pods run."""
    found = plane.api.get(DEPLOYMENT)
    count = found["spec"]["replicas"]
    ready = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), count)
    status = {"observedGeneration": found["metadata"]["generation"], **ready}
    plane.api.replace_status({**found, "status": status})


def is_unschedulable(pod: Object) -> bool:
    """Whether kube-scheduler says so."""
    return any(each.get("reason") == "Unschedulable" for each in pod["status"].get("conditions") or ())


def test_each_command_prints_what_the_page_says(plane: ControlPlane, tmp_path: Path) -> None:
    """From the first look to the switch-off, with a VM that then waits for a node that the webhook required."""
    api, reader, steps = plane.api, Reader(plane, tmp_path / "clone"), iter(shown())
    makers = (builders.node, builders.longhorn_node, builders.instance_manager_pod)
    cluster_nodes = [make(name) for make in makers for name in NODES]
    assert plane.scheduler
    with ExitStack() as here:
        cluster, starting = here.enter_context(ClusterState(api)), here.enter_context(Starting(api))
        cluster.become([*cluster_nodes, *vm("db01")])
        before = api.create(launcher("db01", "aaaaa", opt_in=None, node=NODES[1]))
        runs(plane, before)

        for _ in ("candidates", "bundle", "apply"):
            reader.sees(next(steps))
        installed = Installed(plane, tmp_path)
        has_rolled_out(plane)
        reader.sees(next(steps))
        until_watched(here.enter_context(installed.serving()))
        installed.enable()
        installed.until_called()
        for _ in ("check", "patch", "explain"):
            reader.sees(next(steps))

        assert next(steps).command.startswith("virtctl restart db01 ")  # KubeVirt's; the next lines play it
        api.delete(before)
        after = api.create(launcher("db01", "bbbbb"))
        assert starting.placed(after) == HOME
        runs(plane, after)
        for _ in ("status", "bundle"):
            reader.sees(next(steps))

        plane.scheduler.stop()
        waits = [*cluster_nodes, *vm("db01"), *vm("db02")]
        cluster.become(waits)
        pinned = api.create(launcher("db02", "x7k2p"))
        cluster.become([*waits, builders_pods.pod("taker", node=HOME, requests=ALL_OF_A_NODE)])
        plane.scheduler.start()
        until(lambda: is_unschedulable(api.get(pinned)), "what kube-scheduler says")
        reader.sees(next(steps))
    assert list(steps) == []
