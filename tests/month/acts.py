"""What each event of the plan does, as people, guests and nodes do it. It returns when the event has taken hold."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Final

from month.machines import Machines
from month.plan import Event, Machine, What
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Object
from support.kubevirt import vms
from support.kubevirt.kubelets import ended, is_over
from support.objects.builders import NAMESPACE

_COMPONENT: Final = "longhorn.io/component"
_SHARE_MANAGER: Final = "share-manager"

Done = Callable[[], bool] | None
"""Whether the controllers have seen what was done; None where that shows at once."""


class Acts:
    """Acts on the VMs."""

    def __init__(self, machines: Machines) -> None:
        self._all, self._cluster, self._nodes = machines, machines.cluster, machines.nodes
        self._migrations = 0
        self._acts: Mapping[What, Callable[[Event], Done]] = {
            What.START: self._start,
            What.STOP: self._stop,
            What.GUEST_RESTART: self._guest_restarts,
            What.QUICK_RESTART: self._restart,
            What.MIGRATION: self._migrate,
            What.DRAIN: self._drain,
            What.UNCORDON: lambda event: self._nodes.cordon(event.target, on=False),
            What.NODE_LOSS: self._lose,
            What.NODE_BACK: self._bring_back,
            What.POWER_CUT: self._cut,
            What.POWER_BACK: self._boot,
        }

    def act(self, event: Event) -> Done:
        """Do it."""
        return self._acts[event.what](event)

    def make(self, machine: Machine) -> None:
        """A VM that starts at once."""
        opt_in = "true" if machine.opted_in else None
        self._cluster.make(machine.name, machine.claims, opt_in=opt_in, memory=machine.memory)
        self._all.wanted.add(machine.name)

    def _start(self, event: Event) -> Done:
        self._all.wanted.add(event.target)
        self._cluster.api.patch(vms.vm(event.target), {"spec": {"runStrategy": "Always"}})
        return None

    def _stop(self, event: Event) -> Done:
        self._all.wanted.discard(event.target)
        self._cluster.api.patch(vms.vm(event.target), {"spec": {"runStrategy": "Halted"}})
        return None

    def _guest_restarts(self, event: Event) -> Done:
        """The guest powers off, and virt-controller starts the VM again."""
        instance = self._all.instance(event.target)
        if event.target not in self._all.wanted or instance is None:
            return None
        self._nodes.virt_handler.shut_down(instance)
        return self._is_another(event.target, instance)

    def _restart(self, event: Event) -> Done:
        """As `virtctl restart`. The share-manager stays until the next pod, or is stopped in between."""
        instance = self._all.instance(event.target)
        if event.target not in self._all.wanted or instance is None:
            return None
        volumes = [self._nodes.longhorn.volumes[NAMESPACE, claim] for claim in self._all.machines[event.target].claims]
        if event.keeps:
            self._nodes.longhorn.kept.update(volumes)
        self._cluster.api.delete(vms.instance(event.target))
        is_another = self._is_another(event.target, instance)

        def done() -> bool:
            """The new pod holds the share-managers, once it has a node."""
            is_done = is_another() and None not in self._all.homes(event.target)
            if is_done:
                self._nodes.longhorn.kept.difference_update(volumes)
            return is_done

        return done

    def _is_another(self, name: str, before: Object) -> Callable[[], bool]:
        uid = before["metadata"]["uid"]

        def done() -> bool:
            now = self._all.instance(name)
            return now is not None and now["metadata"]["uid"] != uid and now.get("status", {}).get("phase") == "Running"

        return done

    def _migrate(self, event: Event) -> Done:
        if event.target not in self._all.wanted:
            return None
        self._migrations += 1
        name = f"{event.target}-by-hand-{self._migrations}"
        with contextlib.suppress(ApiError):  # another one is under way
            self._cluster.api.create(vms.migration(name, event.target))
            return lambda: name in self._all.migrations
        return None

    def _drain(self, event: Event) -> Done:
        """As `kubectl drain`: cordon, and evict all pods.

        The share-managers are back before the first VM is migrated: in a cluster that takes them seconds, and two
        migrations at a time leave a node.
        """
        self._nodes.cordon(event.target)
        for pod in self._pods_on(event.target):
            if not _is_vm(pod):
                self._cluster.evict(pod)
        waiting = [True]

        def done() -> bool:
            pods = self._pods_on(event.target)
            if waiting and all(map(_is_vm, pods)) and self._all.have_homes():
                waiting.clear()
                for pod in pods:
                    self._cluster.evict(pod)
            return not waiting and not any(map(_is_vm, pods))

        return done

    def _lose(self, event: Event) -> Done:
        """A node goes down, and somebody fences it: its pods are deleted by force.

        This includes the pods that kube-scheduler bound there before it saw the taint. It includes those that are over,
        too: without a newer pod on the node, virt-controller takes a finished one for the VM's (CurrentVMIPod).
        """
        self._nodes.lose(event.target)

        def done() -> bool:
            pods = self._pods_on(event.target, over=True)
            for pod in pods:
                self._cluster.api.delete(pod, missing_ok=True)
            return not pods

        done()
        return done

    def _bring_back(self, event: Event) -> Done:
        self._nodes.bring_back(event.target)
        return None

    def _cut(self, _: Event) -> Done:
        """The power of all nodes is off, and the API server's, too: nothing changes there."""
        self._before, self._all.wanted = self._all.wanted, set()
        return None

    def _boot(self, _: Event) -> Done:
        """All nodes are back: no pod's containers are."""
        self._all.wanted = self._before
        gone = [pod for name in self._nodes.names for pod in self._pods_on(name)]
        for pod in gone:
            if _is_vm(pod):
                self._cluster.api.patch(pod, {"status": ended(pod, "Failed")}, subresource="status")
            else:
                self._cluster.api.delete(pod, missing_ok=True)
        before = {each["metadata"]["uid"] for each in self._nodes.virt_handler.instances.values()}

        def done() -> bool:
            """virt-handler finds no domain: the VMs have failed."""
            instances = [*self._nodes.virt_handler.instances.values()]
            found = [each for each in instances if each["metadata"]["uid"] in before]
            running = [each for each in found if each.get("status", {}).get("phase") in ("Scheduled", "Running")]
            for each in running:
                self._nodes.virt_handler.shut_down(each, "Failed")
            return not running

        return done

    def _pods_on(self, node: str, *, over: bool = False) -> list[Object]:
        """The pods of VMs and share-managers on a node: those that are not over, or those that are, too."""
        pods = [*self._nodes.kubelets.pods.values()]
        ours = [
            pod
            for pod in pods
            if _is_vm(pod) or (pod["metadata"].get("labels") or {}).get(_COMPONENT) == _SHARE_MANAGER
        ]
        return [pod for pod in ours if pod["spec"].get("nodeName") == node and (over or not is_over(pod))]


def _is_vm(pod: Object) -> bool:
    return (pod["metadata"].get("labels") or {}).get("kubevirt.io") == "virt-launcher"
