"""The model of virt-controller and of the kubelet for VMs: start, stop, guest restart, and a pod that becomes a guest.

Upstream: kubevirt pkg/virt-controller/watch/vm and watch/vmi. A start has a new VirtualMachineInstance and a new pod. A
guest that powers itself off under runStrategy Always gets both again within seconds, so that its share-manager often
still runs. A pod starts its guest once every volume is attached and served.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from simulation.admission import Creation
from simulation.api_server import POD, SHARE_MANAGER, VMS, ApiServer, Object, is_virt_launcher, key_of
from simulation.engine import Engine
from simulation.longhorn import Longhorn
from simulation.nodes import Nodes
from simulation.vm import VM, instance_of, machine_of, virt_launcher_pod

from webhook.core.view import Kind

_SYNC_SECONDS: Final = (0.05, 0.3)  # a controller's reaction to a change
_ATTACH_SECONDS: Final = (0.05, 0.3)  # bound to ticket: attach-detach controller and CSI attacher
_DETACH_SECONDS: Final = (0.5, 3.0)
_BOOT_SECONDS: Final = (2.0, 6.0)  # volumes served to Running
_SHUTDOWN_SECONDS: Final = (5.0, 30.0)
_AGAIN_SECONDS: Final = (1.0, 10.0)  # a VMI that failed or ended, to the next one


class VirtController:
    """All VMs.

    Attributes:
        pod_runs: called with a pod's key once its guest or its migration target is ready.
        stopping: called with a VM whose guest ends.
    """

    def __init__(self, engine: Engine, api: ApiServer, nodes: Nodes, longhorn: Longhorn, creation: Creation) -> None:
        self.engine = engine
        self.api = api
        self.nodes = nodes
        self.longhorn = longhorn
        self.creation = creation
        self.vms: dict[str, VM] = {}
        self.pod_runs: Callable[[str], object] = lambda _: None
        self.stopping: Callable[[VM], object] = lambda _: None
        self._rng = engine.rng("virt-controller")
        self._waiting: dict[str, VM] = {}  # pods that are on a node and wait for their volumes
        self._attaching: set[str] = set()
        api.listeners.append(self._changed)
        nodes.died.append(self._node_died)
        nodes.pods_lost.append(self._pods_lost)

    def add(self, vm: VM) -> None:
        """Add a VM, which is halted."""
        self.vms[vm.name] = vm
        self.api.put(Kind.VIRTUAL_MACHINE, machine_of(vm))

    def vm_of(self, pod: Object) -> VM:
        """Return the VM of a virt-launcher pod."""
        return self.vms[pod["metadata"]["ownerReferences"][0]["name"]]

    def node_of(self, vm: VM) -> str:
        """Return the node of the VM's pod; empty if it is on none."""
        pod = self.api.pod(vm.pod)
        return (pod["spec"].get("nodeName") or "") if pod else ""

    # What users and guests do.

    def start(self, vm: VM) -> None:
        """Start the VM, if it is not wanted already."""
        if not vm.wanted:
            vm.wanted = True
            self.api.act(self._rng.uniform(*_SYNC_SECONDS), lambda: self._make(vm))

    def stop(self, vm: VM) -> None:
        """Stop the VM: its guest shuts down, and its pod goes."""
        if vm.wanted:
            vm.wanted = False
            self.api.act(self._rng.uniform(*_SYNC_SECONDS), lambda: self._stop(vm))

    def guest_restarts(self, vm: VM) -> None:
        """The guest powers itself off, and KubeVirt makes a new VirtualMachineInstance."""
        if vm.running and not self.api.away:
            key, pod = vm.pod, self.api.pod(vm.pod)
            assert pod is not None
            self.engine.trace(f"{vm.name} restarts by its guest")
            self._leave(vm)
            self.api.put(POD, {**pod, "status": {**pod["status"], "phase": "Succeeded"}})
            self._detach(vm, key)
            self.api.act(self._rng.uniform(*_DETACH_SECONDS), lambda: self.api.delete(POD, key))
            self._again(vm)

    # What the controller does.

    def _make(self, vm: VM) -> None:
        if not vm.wanted or vm.pod:
            return
        vm.starts, vm.started = vm.starts + 1, self.engine.now
        vm.uid = uid = f"{vm.name}-{vm.starts}"
        vm.pod = f"{VMS}/expected-{uid}"
        self.runs_on(vm, "")
        self.creation.create(virt_launcher_pod(vm), lambda pod: self._made(vm, uid, pod))

    def _made(self, vm: VM, uid: str, pod: Object) -> None:
        if vm.uid != uid or vm.pod != f"{VMS}/expected-{uid}":
            self.api.delete(POD, key_of(pod))
            return
        vm.pod = key_of(pod)

    def _stop(self, vm: VM) -> None:
        key, pod = vm.pod, self.api.pod(vm.pod)
        self._leave(vm)
        if pod is None:
            return
        self.api.put(POD, {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": self.engine.timestamp}})
        self.api.act(self._rng.uniform(*_SHUTDOWN_SECONDS), lambda: self.remove(vm, key))
        if vm.wanted:  # started again in the meantime
            self._again(vm)

    def _leave(self, vm: VM) -> None:
        vm.running, vm.evacuates = False, ""
        self.stopping(vm)
        vm.pod = ""
        self.api.delete(Kind.VIRTUAL_MACHINE_INSTANCE, f"{VMS}/{vm.name}")

    def runs_on(self, vm: VM, node: str) -> None:
        """Write the VM's VirtualMachineInstance, which runs on `node`, or on none yet."""
        self.api.put(Kind.VIRTUAL_MACHINE_INSTANCE, instance_of(vm, node))

    def _again(self, vm: VM) -> None:
        self.api.act(self._rng.uniform(*_AGAIN_SECONDS), lambda: self._make(vm))

    def remove(self, vm: VM, key: str) -> None:
        """Remove a pod of the VM, and then its tickets."""
        self.api.delete(POD, key)
        self._waiting.pop(key, None)
        self._detach(vm, key)

    def _detach(self, vm: VM, key: str) -> None:
        pause = self._rng.uniform(*_DETACH_SECONDS)
        self.api.act(pause, lambda: [self.longhorn.detach(volume, key) for volume in vm.volumes])

    # What kubelets do.

    def _changed(self, kind: Kind, key: str, pod: Object | None) -> None:
        if kind is not POD or pod is None or pod["status"].get("phase") not in ("Pending", "Running"):
            return
        node = pod["spec"].get("nodeName")
        if is_virt_launcher(pod):
            if node and key not in self._attaching and pod["status"]["phase"] == "Pending":
                self._attaching.add(key)
                vm = self.vm_of(pod)
                self.api.act(self._rng.uniform(*_ATTACH_SECONDS), lambda: self._attach(vm, key, node))
        elif key.startswith(SHARE_MANAGER) and pod["status"]["phase"] == "Running":
            volume = key.removeprefix(SHARE_MANAGER)
            for waiting, vm in list(self._waiting.items()):
                if volume in vm.volumes:
                    self._try(waiting, vm)

    def _attach(self, vm: VM, key: str, node: str) -> None:
        if self.api.pod(key) is None:
            return
        for volume in vm.volumes:
            self.longhorn.attach(volume, key, node)
        self._waiting[key] = vm
        self._try(key, vm)

    def _try(self, key: str, vm: VM) -> None:
        if all(map(self.longhorn.serves, vm.volumes)):
            del self._waiting[key]
            self.engine.after(self._rng.uniform(*_BOOT_SECONDS), lambda: self._run(key, vm))

    def _run(self, key: str, vm: VM) -> None:
        pod = self.api.pod(key)
        if (
            pod is None
            or "deletionTimestamp" in pod["metadata"]
            or not self.nodes.states[pod["spec"]["nodeName"]].alive
        ):
            return
        if self.api.away or not all(map(self.longhorn.serves, vm.volumes)):  # the share-manager went again
            self._waiting[key] = vm
            self.engine.after(_BOOT_SECONDS[1], lambda: key in self._waiting and self._try(key, vm))
            return
        self.api.put(POD, {**pod, "status": {**pod["status"], "phase": "Running"}})
        if key == vm.pod:
            vm.running = True
            self.runs_on(vm, pod["spec"]["nodeName"])
        self.pod_runs(key)

    def _node_died(self, node: str) -> None:
        for key, pod in self.nodes.pods_on(node):
            if is_virt_launcher(pod) and (vm := self.vm_of(pod)).pod == key:
                vm.running = False

    def _pods_lost(self, node: str) -> None:
        for key, pod in self.nodes.pods_on(node):
            if is_virt_launcher(pod):
                vm = self.vm_of(pod)
                if vm.pod == key:
                    self._leave(vm)
                    self._again(vm)
                self.remove(vm, key)
