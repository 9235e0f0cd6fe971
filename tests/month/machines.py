"""The VMs of the month, as they are now: what runs where, and what is on its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from month.account import Place
from month.plan import Machine
from support.control_plane.kube_api import Object
from support.control_plane.vm_starts import decision
from support.kubevirt.cluster import FINAL, Cluster
from support.kubevirt.kubelets import is_over
from support.objects.builders import NAMESPACE

_CREATED_BY: Final = "kubevirt.io/created-by"


class Machines:
    """Read from what those who are played have followed, without a request.

    Attributes:
        wanted: the VMs that shall run.
        migrations: all that there were, by name.
    """

    def __init__(self, cluster: Cluster, machines: Sequence[Machine]) -> None:
        self.cluster, self.nodes = cluster, cluster.nodes
        self.machines = {machine.name: machine for machine in machines}
        self.wanted: set[str] = set()
        self.migrations: dict[str, Object] = {}

    def places(self) -> dict[str, Place]:
        """Where every VM is."""
        pods = self._pods_of_instances()
        return {name: self._place(name, pods) for name in self.machines}

    def restless(self) -> list[str]:
        """The VMs that something is on its way with."""
        moving = {each["spec"]["vmiName"] for each in [*self.migrations.values()] if not is_final(each)}
        pods = self._pods_of_instances()
        return [name for name in self.machines if name in moving or not self._rests(name, pods)]

    def _rests(self, name: str, pods_of: Mapping[str, Sequence[Object]]) -> bool:
        instance = self.instance(name)
        if name not in self.wanted:
            return instance is None
        if instance is None or "deletionTimestamp" in instance["metadata"]:
            return False
        status, pods = instance.get("status") or {}, pods_of.get(instance["metadata"]["uid"], ())
        nodes = [pod["spec"].get("nodeName") for pod in pods]
        return status.get("phase") == "Running" and nodes == [status["nodeName"]] and None not in self.homes(name)

    def instance(self, name: str) -> Object | None:
        """The instance of a VM."""
        return self.nodes.virt_handler.instances.get((NAMESPACE, name))

    def _pods_of_instances(self) -> Mapping[str, Sequence[Object]]:
        """The uid of an instance -> its launcher pods that are not over."""
        found: dict[str, list[Object]] = {}
        for pod in [*self.nodes.kubelets.pods.values()]:
            owner = (pod["metadata"].get("labels") or {}).get(_CREATED_BY)
            if owner and not is_over(pod):
                found.setdefault(owner, []).append(pod)
        return found

    def homes(self, name: str) -> tuple[str | None, ...]:
        """The nodes of a VM's share-managers."""
        longhorn = self.nodes.longhorn
        volumes = [longhorn.volumes.get((NAMESPACE, claim), "") for claim in self.machines[name].claims]
        return tuple(longhorn.node(volume) for volume in volumes)

    def have_homes(self) -> bool:
        """Whether the share-managers of all VMs that shall run do."""
        return all(None not in self.homes(name) for name in self.wanted)

    def user(self, volume: str) -> str:
        """The VM of a volume."""
        return next(
            name
            for name, machine in self.machines.items()
            if volume in (self.nodes.longhorn.volumes.get((NAMESPACE, claim)) for claim in machine.claims)
        )

    def _place(self, name: str, pods_of: Mapping[str, Sequence[Object]]) -> Place:
        instance = self.instance(name) or {"metadata": {"uid": ""}}
        status = instance.get("status") or {}
        node = status.get("nodeName") if status.get("phase") == "Running" else None
        pinned = any(decision(pod).startswith("required") for pod in pods_of.get(instance["metadata"]["uid"], ()))
        return Place(name in self.wanted, node, self.homes(name), pinned and node is None)

    def is_apart(self) -> bool:
        """Whether any VM is that is opted in and on."""
        places = [place for name, place in self.places().items() if self.machines[name].opted_in and place.wanted]
        return any(place.node and {*place.homes} != {place.node} for place in places)

    def migration_changed(self, migration: Object, *, gone: bool) -> None:
        """Keep it; one that was over stays."""
        name = migration["metadata"]["name"]
        if not gone or is_final(migration):
            self.migrations[name] = migration
        else:
            self.migrations.pop(name, None)


def is_final(migration: Object) -> bool:
    """Whether a migration is over."""
    return (migration.get("status") or {}).get("phase") in FINAL
