"""Runs of `reunite` beside a descheduler that balances: how often a VM is moved, and how that ends.

The VM's home is more than half full and the other nodes are empty, so the descheduler evicts the VM whenever it is at
home. KubeVirt is played: an eviction becomes a migration to the emptiest node, and each migration succeeds at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from coexistence.cluster import Cluster, nodes
from coexistence.deschedulers import BALANCES, deschedule
from coexistence.forms import HOSTNAME, filler
from coexistence.rows import Row, pinned
from controlplane import build
from support.control_plane.kube_api import Object
from support.drivers.status_runs import instance
from support.objects.fleets import disk, running_pod, served
from support.scenarios.admitting import until
from support.scenarios.stuck_starts import kubevirt_kinds, reunite

from webhook.core.reunite.migration import ANNOTATION_EVACUATION, LABEL_REUNITE

VM: Final = "balanced"
HOME, AWAY = "node-a", "node-h"
_NODES: Final = 8
_LOAD_GIB: Final = 300  # of 512
_KIND: Final = ("kubevirt.io/v1", "VirtualMachineInstanceMigration", "vms")
_KEPT: Final = 5  # final migrations of a VM, by KubeVirt
_ROUNDS_MAX: Final = 10  # of the descheduler; more would mean that the two move the VM without end
_SHORT: Final = ("--dry-run", "off", "--apart-seconds", "1")
_AGAIN_AT_ONCE: Final = (*_SHORT, "--cooldown-seconds", "1")


class _Setting(NamedTuple):
    title: str
    version: str
    priority: str | None
    flags: tuple[str, ...]
    expected: str


_ONCE_HOME: Final = "away: 2, home: 1, then MovedAgain"
_SETTINGS: Final = (
    _Setting("VM, cooldown of 1 s, KubeVirt 1.9", "v1.9.0", "system-maintenance", _AGAIN_AT_ONCE, _ONCE_HOME),
    _Setting("VM, cooldown of 1 s, KubeVirt 1.8", "v1.8.0", None, _AGAIN_AT_ONCE, _ONCE_HOME),
    _Setting("VM, cooldown of a day", "v1.9.0", "system-maintenance", _SHORT, "away: 1, home: 0, then MovedByOthers"),
)


def rows(cluster: Cluster) -> Iterator[Row]:
    """The moves of one VM, by the cooldown and by what KubeVirt says of an eviction."""
    version = pinned(build.DESCHEDULER, "sigs.k8s.io/descheduler")
    with kubevirt_kinds(cluster.plane):
        for setting in _SETTINGS:
            seen = _played(cluster, setting)
            yield Row(
                f"descheduler {version}", f"reunite beside {BALANCES.settings}", setting.title, setting.expected, seen
            )
            cluster.clear()


def _played(cluster: Cluster, setting: _Setting) -> str:
    cluster.become([*nodes(_NODES), filler("load", HOME, _LOAD_GIB), *disk(VM), *served(VM, HOME)])
    controller = _VirtController(cluster, setting)
    kubeconfig = cluster.plane.kubeconfig(cluster.plane.directory / "reunite.kubeconfig", cluster.plane.admin)
    try:
        end = _end(cluster, controller, lambda: reunite(kubeconfig, *setting.flags)[1], setting.expected.split()[-1])
    finally:
        controller.clear()
    return f"away: {controller.away}, home: {controller.home}, {end}"


def _end(cluster: Cluster, controller: _VirtController, run: Callable[[], str], rule: str) -> str:
    """Let the descheduler run until `reunite` reports this rule. It reports others in between, while the VM waits."""
    said: list[str] = []

    def goes_on() -> bool:
        said.append(run())
        return controller.brings_home() or f"{rule}: " in said[-1]

    for _ in range(_ROUNDS_MAX):
        deschedule(cluster, BALANCES)
        if controller.evicted():
            until(goes_on, lambda: said[-1])
            if f"{rule}: " in said[-1]:
                return f"then {rule}"
    return "and no end"


class _VirtController:
    """What virt-controller and virt-handler do with the migrations of one VM. Counts the VM's moves."""

    def __init__(self, cluster: Cluster, setting: _Setting) -> None:
        self._api, self._priority = cluster.api, setting.priority
        self.home = self.away = 0
        status = {"phase": "Deployed", "observedKubeVirtVersion": setting.version}
        self._kubevirt = self._api.create(_object("KubeVirt", "kubevirt", status=status))
        vmi = instance(VM)
        vmi["status"] |= {"phase": "Running", "nodeName": HOME}
        self._vmi = self._api.create(vmi)
        self._pod = self._started(HOME, "0")

    def evicted(self) -> bool:
        """Migrate the VM away if somebody evicts its pod, and return whether somebody does."""
        found = self._api.find(self._pod)
        if found and "deletionTimestamp" not in found["metadata"]:
            return False
        self.away += 1
        spec = {"vmiName": VM, **({"priority": self._priority} if self._priority else {})}
        migration = _object(_KIND[1], f"kubevirt-evacuation-{self.away}", spec=spec)
        migration["metadata"]["annotations"] = {ANNOTATION_EVACUATION: HOME}
        self._migrate(self._api.create(migration), HOME, AWAY)
        return True

    def brings_home(self) -> bool:
        """Carry out the migration of `reunite` if there is one, and return whether there is."""
        ours = [each for each in self._api.items(*_KIND) if LABEL_REUNITE in each["metadata"].get("labels", {})]
        new = [each for each in ours if not each.get("status")]
        for each in new:
            assert each["spec"]["addedNodeSelector"] == {HOSTNAME: HOME}
            self.home += 1
            self._migrate(each, AWAY, HOME)
        return bool(new)

    def clear(self) -> None:
        """Delete the VM and KubeVirt."""
        for each in (self._pod, self._vmi, self._kubevirt, *self._api.items(*_KIND)):
            self._api.delete(each, missing_ok=True)

    def _migrate(self, migration: Object, source: str, target: str) -> None:
        self._api.delete(self._pod, missing_ok=True)
        self._pod = self._started(target, migration["metadata"]["name"])
        self._api.patch(self._vmi, {"status": {"nodeName": target}})
        ended = {"phase": "Succeeded", "phaseTransitionTimestamp": _now()}
        state = {"sourceNode": source, "targetNode": target}
        status = {"phase": "Succeeded", "phaseTransitionTimestamps": [ended], "migrationState": state}
        self._api.patch(migration, {"status": status})
        final = sorted(self._api.items(*_KIND), key=lambda each: each["metadata"]["creationTimestamp"])
        for each in final[:-_KEPT]:
            self._api.delete(each)

    def _started(self, node: str, run: str) -> Object:
        pod = running_pod(VM, VM, node, _now(), pod=run)
        del pod["metadata"]["creationTimestamp"]
        if run != "0":
            pod["metadata"]["labels"]["kubevirt.io/migrationJobUID"] = run
        created = self._api.create(pod)
        return self._api.replace_status({**created, "status": pod["status"]})


def _object(kind: str, name: str, **parts: Any) -> Object:
    return {"apiVersion": _KIND[0], "kind": kind, "metadata": {"name": name, "namespace": _KIND[2]}, **parts}


def _now() -> str:
    return datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
