"""VMs that get stuck on a real control plane: kube-scheduler stands still while something happens to their nodes.

The nodes are equal, and each has room for `SEATS` VMs. Each VM has its share-manager on a node of its own, where a
webhook that is alone pins it.
"""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Final, NamedTuple, Self

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Api, Object
from support.control_plane.kubevirt_kinds import crd
from support.control_plane.scheduled import is_judged
from support.control_plane.vm_starts import decision
from support.objects import builders
from support.objects.builders_pods import asking, pod
from support.scenarios.admitting import until, until_watched

from webhook import cli
from webhook.core.reunite import stuck

SEATS: Final = 4
ONE: Final = {"cpu": "1"}
_KINDS: Final = ("VirtualMachine", "VirtualMachineInstance", "VirtualMachineInstanceMigration", "KubeVirt")
_POLL_SECONDS: Final = 0.2


class VM(NamedTuple):
    """One VM, whose share-manager is on `home`."""

    name: str
    home: str
    run_strategy: str = "Always"

    @property
    def volume(self) -> list[Object]:
        """Its claim, and what leads from there to its share-manager's node."""
        handle = f"pvc-{self.name}"
        return [
            builders.persistent_volume_claim(self.name, volume_name=handle),
            builders.persistent_volume(handle, claim=self.name),
            builders.share_manager(handle, state="running", ownerID=self.home),
            builders.share_manager_pod(handle, nodeName=self.home),
        ]

    @property
    def machine(self) -> Object:
        """The VirtualMachine object, as the API server has it."""
        spec = {"runStrategy": self.run_strategy}
        return {**_kubevirt("VirtualMachine", self.name), "spec": spec}

    def instance(self) -> Object:
        """Its VirtualMachineInstance."""
        found = _kubevirt("VirtualMachineInstance", self.name)
        owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": self.name, "uid": "of-a-test"}
        found["metadata"]["ownerReferences"] = [owner]
        return {**found, "status": {"phase": "Scheduling"}}

    def launcher(self, run: int) -> Object:
        """The virt-launcher pod of a run."""
        return asking(builders.vm_pod(f"{self.name}-{run}", vm=self.name, claims=[self.name], opt_in="required"), ONE)


def _kubevirt(kind: str, name: str) -> Object:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": builders.NAMESPACE},
    }


_TRIED: Final = {"type": "PodScheduled", "status": "False", "lastTransitionTime": "2026-01-02T03:04:05Z"}


class VirtController:
    """What virt-controller does with a VM whose pod is gone: it starts the VM again, and counts a failed start.

    Upstream: syncRunStrategy and syncStartFailureStatus in pkg/virt-controller/watch/vm/vm.go. It waits `wait_seconds`
    before a second start, there 10 to 15. A VM with another runStrategy than Always stays without a pod.

    Attributes:
        runs: how often each VM was started.
    """

    def __init__(self, api: Api, vms: Iterable[VM], wait_seconds: float) -> None:
        self.runs = dict.fromkeys(vms, 0)
        self._wait_seconds = wait_seconds
        self._again_at: dict[VM, float] = {}
        self._api = Api(api.url, api.token, api._trust)  # its connections are those of its thread
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        for vm in self.runs:
            self._api.create(vm.machine)
            self._api.create(vm.instance())
            until(lambda vm=vm: self._is_alone(vm), f"no pod on the way beside that of {vm.name}")
            self.runs[vm] += 1
            tried = {"status": {"conditions": [_TRIED]}}
            self._api.patch(self._api.create(vm.launcher(1)), tried, subresource="status")
        self._thread.start()
        return self

    def _is_alone(self, vm: VM) -> bool:
        """Whether the webhook knows that kube-scheduler has tried the pods of the VMs before this one."""
        return decision(self._api.create(vm.launcher(1), dryRun="All")).startswith("required")

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        for vm in self.runs:
            for each in (vm.machine, vm.instance(), vm.launcher(self.runs[vm])):
                self._api.delete(each, missing_ok=True)
        self._api.forget_connections()

    def pod(self, vm: VM) -> Object | None:
        """The pod of the VM's last run, as it is now."""
        return self._api.find(vm.launcher(self.runs[vm]))

    def node(self, vm: VM) -> str | None:
        """The node of this pod."""
        return (self.pod(vm) or {"spec": {}})["spec"].get("nodeName")

    def _start(self, vm: VM) -> None:
        self._api.create(vm.instance())
        self.runs[vm] += 1
        self._api.create(vm.launcher(self.runs[vm]))

    def _run(self) -> None:
        while not self._over.wait(_POLL_SECONDS):
            for vm in self.runs:
                if vm.run_strategy == "Always" and self.pod(vm) is None:
                    self._fail_or_start(vm)

    def _fail_or_start(self, vm: VM) -> None:
        if vm not in self._again_at:
            self._api.delete(vm.instance())
            failure = {"consecutiveFailCount": self.runs[vm], "lastFailedVMIUID": "of-a-test"}
            self._api.patch(vm.machine, {"status": {"startFailure": failure}})
            self._again_at[vm] = time.monotonic() + self._wait_seconds
        elif time.monotonic() >= self._again_at[vm]:
            del self._again_at[vm]
            self._start(vm)


def reunite(kubeconfig: Path, *flags: str, stuck_seconds: float = 1.0) -> tuple[int, str]:
    """One run of `reunite` in this process; its exit code and what it prints, with one space between words."""
    out = io.StringIO()
    with redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
        patch.setattr(stuck, "STUCK_SECONDS", stuck_seconds)
        code = cli.main(["reunite", "--kubeconfig", str(kubeconfig), *flags])
    return code, re.sub(" +", " ", out.getvalue())


def nodes(names: Iterable[str]) -> list[Object]:
    """Equal nodes."""
    names = list(names)
    found = [builders.node(name, allocatable={"cpu": str(SEATS)}) for name in names]
    return [*found, *map(builders.longhorn_node, names)]


def fill(api: Api, node: str, left: int = 0) -> None:
    """Others take the node, except for so many VMs."""
    for index in range(SEATS - left):
        api.create(pod(f"filler-{node}-{index}", node=node, requests=ONE))


def lose(api: Api, node: str) -> None:
    """The node's kubelet is silent: what the node lifecycle controller writes then."""
    lost = builders.node(node, ready="Unknown", allocatable={"cpu": str(SEATS)})
    api.patch(lost, {"spec": {"taints": lost["spec"]["taints"]}})
    api.patch(lost, {"status": {"conditions": lost["status"]["conditions"]}}, subresource="status")


def cordon(api: Api, node: str) -> None:
    """As `kubectl cordon`."""
    cordoned = builders.node(node, cordoned=True)
    api.patch(cordoned, {"spec": cordoned["spec"]})


@contextmanager
def kubevirt_kinds(plane: ControlPlane) -> Iterator[None]:
    """KubeVirt's kinds on a control plane, until the block ends."""
    definitions = list(map(crd, _KINDS))
    plane.install(definitions)
    yield
    for each in definitions:
        plane.api.delete(each)
    plane.install_kubevirt()


class Cluster:
    """Nodes and VMs on a control plane, with the webhook that decides about their pods."""

    def __init__(self, installed: Installed, vms: Iterable[VM], others: Iterable[str] = ()) -> None:
        """`others`: nodes beside those of the share-managers."""
        self.api, self._installed = installed.plane.api, installed
        self.vms = list(vms)
        self._nodes = sorted({*(vm.home for vm in self.vms), *others})
        self._state = ClusterState(self.api)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._state)
        self._state.become([*nodes(self._nodes), *(each for vm in self.vms for each in vm.volume)])
        self._stack.callback(self._clear)
        served = self._stack.enter_context(self._installed.serving())
        self._installed.enable()
        self._stack.callback(self._installed.disable)
        until_watched(served)
        self._installed.until_called()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _clear(self) -> None:
        for namespace in (builders.NAMESPACE, builders.LONGHORN_NAMESPACE):
            path = f"/api/v1/namespaces/{namespace}/pods"
            self.api.call("DELETE", path, parameters={"gracePeriodSeconds": "0"})

    @contextmanager
    def started(self, happens: Callable[[Api], None], *, wait_seconds: float = 0.0) -> Iterator[VirtController]:
        """Start the VMs, and let this happen between the admission of their pods and the look of kube-scheduler."""
        scheduler = self._installed.plane.scheduler
        assert scheduler is not None
        scheduler.stop()
        try:
            with VirtController(self.api, self.vms, wait_seconds) as virt_controller:
                for vm in self.vms:
                    assert decision(virt_controller.pod(vm) or {}).startswith(f"required on {vm.home}: ")
                happens(self.api)
                scheduler.start()
                for vm in self.vms:
                    until(lambda vm=vm: is_judged(virt_controller.pod(vm) or {}), f"a look at {vm.name}")
                yield virt_controller
        finally:
            scheduler.stop()
            scheduler.start()
