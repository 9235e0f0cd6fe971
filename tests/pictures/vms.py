"""A cluster for pictures: VMs of several namespaces, most of them together with their share-managers, some not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final, NamedTuple

from support.objects import builders
from support.objects.fleets import scheduled, unschedulable

_NAMESPACES: Final = ("shop-production", "shop-staging", "payments", "databases", "build-farm", "office")
_KINDS: Final = ("web", "db", "cache", "mail", "ci-runner", "windows", "queue-worker", "search")
_ROOM: Final = "too little of memory: 8Gi is requested, 250Gi of 256Gi is taken"
_MOVED: Final = "others moved it away 2 times from home; it stays until its next start, while KubeVirt keeps those"
Object = dict[str, Any]


class Plan(NamedTuple):
    """How many of each."""

    vms: int
    nodes: int
    apart: int
    stuck: int


class VM(NamedTuple):
    """A VM: where it is, where its share-managers are, and since when. With `node` None it waits for a node."""

    namespace: str
    name: str
    claims: tuple[str, ...]
    node: str | None
    served_on: str | None
    at: datetime
    story: int

    @property
    def apart(self) -> bool:
        """Whether its share-managers are on another node."""
        return None not in (self.node, self.served_on) and self.node != self.served_on


def node_names(plan: Plan) -> list[str]:
    """The names of the nodes: node-a, node-b in a small cluster, worker-001 in a large one."""
    few = plan.nodes < 10
    return [f"node-{chr(ord('a') + number)}" if few else f"worker-{number + 1:03}" for number in range(plan.nodes)]


def vms(plan: Plan, seed: int = 7) -> Iterator[VM]:
    """The VMs. The same plan and seed give the same VMs, with times that are the same from now."""
    random = Random(seed)  # noqa: S311 - not for secrets
    *nodes, _ = node_names(plan)  # the last one is cordoned and has no VM
    for number in range(plan.vms):
        name, home, other = f"{_KINDS[number % len(_KINDS)]}-{number + 1:02}", *random.sample(nodes, 2)
        apart = number < plan.apart
        stuck = plan.apart <= number < plan.apart + plan.stuck
        minutes = random.choice((4, 25, 190)) if apart or stuck else random.randrange(9000)
        stopped = number % 29 == 28
        yield VM(
            namespace=_NAMESPACES[number % len(_NAMESPACES)],
            name=name,
            claims=(f"{name}-root", *([f"{name}-data"] if number % 7 == 3 else [])),
            node=None if stuck else home,
            served_on=other if apart else None if stopped else home,
            at=datetime.now(UTC) - timedelta(minutes=minutes),
            story=number % 3,
        )


def objects(plan: Plan) -> Iterator[Object]:
    """The objects of the cluster."""
    for name in node_names(plan):
        yield builders.node(name, cordoned=name == node_names(plan)[-1])
        yield builders.longhorn_node(name)
    for vm in vms(plan):
        for claim in vm.claims:
            yield from _disk(vm, claim)
        yield pod_of(vm, plan)
        if vm.apart and vm.story != 1:
            yield _said_by_reunite(vm)


def _said_by_reunite(vm: VM) -> Object:
    """The last Event of `reunite` about a VM that is apart."""
    at = _text(vm.at + timedelta(minutes=1))
    waiting = f"NotPlaceable: node {vm.served_on} has {_ROOM}" if vm.story == 0 else f"MovedAway: {_MOVED}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{vm.name}.reunite", "namespace": vm.namespace},
        "involvedObject": {"kind": "VirtualMachineInstance", "namespace": vm.namespace, "name": vm.name},
        "reason": "ReuniteWaiting",
        "message": waiting,
        "lastTimestamp": at,
    }


def _disk(vm: VM, claim: str) -> Iterator[Object]:
    handle, node = f"pvc-{claim}", vm.served_on
    yield builders.persistent_volume_claim(claim, namespace=vm.namespace, volume_name=handle)
    yield builders.persistent_volume(handle, claim=claim, namespace=vm.namespace, handle=handle)
    yield builders.share_manager(handle, state="running" if node else "stopped", ownerID=node or "")
    if node:
        pod = builders.share_manager_pod(handle, nodeName=node)
        moved = timedelta(minutes=3 if vm.apart and vm.story == 1 else -1)  # after the VM's start, or before it
        pod["status"]["conditions"] = [scheduled(_text(vm.at + moved))]
        yield pod


def pod_of(vm: VM, plan: Plan) -> Object:
    """The pod of a VM, with what the webhook has written. Of three VMs that are apart one was live-migrated."""
    migrated = vm.apart and vm.story == 2
    labels = {"kubevirt.io/migrationJobUID": builders.OWNER_UID} if migrated else {}
    pod = builders.virt_launcher_pod(
        claims=vm.claims,
        namespace=vm.namespace,
        labels=labels,
        annotations={} if migrated else _decision(vm),
        **({"nodeName": vm.node} if vm.node else {}),
    )
    at = _text(vm.at)
    pod["metadata"] |= {"name": f"virt-launcher-{vm.name}-x7k2p", "creationTimestamp": at}
    pod["metadata"]["ownerReferences"][0]["name"] = vm.name
    others = f"{plan.nodes - 1} node(s) didn't match Pod's node affinity/selector"
    full = unschedulable(at, f"0/{plan.nodes} nodes are available: 1 Insufficient memory, {others}.")
    condition = scheduled(at) if vm.node else full
    return {**pod, "status": {"phase": "Running" if vm.node else "Pending", "conditions": [condition]}}


def _decision(vm: VM) -> Mapping[str, str]:
    node = vm.node if vm.apart and vm.story == 1 else vm.served_on
    if vm.apart and vm.story == 0:
        return builders.recorded("preferred", str(node), because=f"NoRoom: node {node} has {_ROOM}")
    if node:
        return builders.recorded("required", node)
    claim = f"claim {vm.claims[0]}: the share-manager of volume pvc-{vm.claims[0]} is on no node yet (state stopped)"
    return builders.recorded("unchanged", because=f"ShareManagerNoNode: {claim}")


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
