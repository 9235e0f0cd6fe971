"""What would bring a VM together with its share-managers again: its next start, or one live migration. Pure.

A share-manager stays where it is while a VM uses its volume, so it is the VM that moves. Invariant: a migration is
offered only to the one node of all its share-managers, and where the VM's pod may run there as far as is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from webhook.core.api.meta import ObjectMeta
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.evidence import share_managers
from webhook.core.observe import restart
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.placement import feasibility
from webhook.core.reasons import Why
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.incoming_pod import ClaimVolume, IncomingPod
from webhook.core.scheduler.state.node_info import NodeInfo, NodeRequests
from webhook.core.scheduler.state.pod_requests import usage
from webhook.core.scheduler.state.snapshot import NOT_COUNTED
from webhook.core.scheduler.status import Passed
from webhook.core.view import ClusterView, NeedObjects, NoObject

HOSTNAME: Final = "kubernetes.io/hostname"
_CONTROL: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)}


class Machine(Struct, frozen=True, kw_only=True):
    """What is known of a VM beside its row.

    Attributes:
        pod: as it was when it was created; None where it could not be read, and then `problem` says why.
        owner: the VirtualMachine behind the instance, which can be restarted.
        run_strategy: the VirtualMachine's; None where it could not be read.
        unmigratable: why KubeVirt would not migrate it; empty where nothing says so.
        notes: what else whoever carries it out should know.
    """

    pod: Pod | None = None
    problem: str = ""
    owner: str | None = None
    run_strategy: str | None = None
    unmigratable: str = ""
    notes: Sequence[str] = ()


class Room:
    """What a node has for pods, and what those take that are there or planned to come; or why that is not known."""

    def __init__(self, has: Mapping[str, int], load: NodeRequests, problem: str = "") -> None:
        self.problem = problem
        self._has = has
        self._load = load

    def refusal(self, node: str, pod: Pod) -> Why | None:
        """Why the pod has no room there; None where it has, or nobody knows."""
        if self.problem:
            return None
        info = NodeInfo(Node(metadata=ObjectMeta(name=node)), self._has, self._load)
        status = feasibility.filter_by_requests(_cycle(pod), info)
        return None if isinstance(status, Passed) else status.why

    def take(self, pod: Pod) -> None:
        """Count it as there."""
        self._load.add(usage(pod.spec))


class Step(Struct, frozen=True, kw_only=True):
    """What to do about one VM: sentences, and the migration where there is one."""

    row: VMStatus
    sentences: list[str]
    migration: dict[str, Any] | None = None

    def lines(self) -> Iterator[str]:
        """The sentences as YAML comments."""
        row = self.row
        head = f"{row.namespace}/{row.name} is {row.state.value}, on {row.node or 'no node'}"
        since = f" since {row.since}" if row.since else ""
        yield f"# {head}{since}: {row.why.sentence}".translate(_CONTROL)
        for sentence in self.sentences:
            yield f"#   {sentence}".translate(_CONTROL)


def targets(row: VMStatus) -> tuple[str, ...]:
    """The nodes of the share-managers that the VM can be together with, by name."""
    return tuple(sorted({volume.node for volume in row.volumes if volume.node and volume.together is not None}))


def step(
    row: VMStatus, machine: Machine, known: ClusterView, nodes: ClusterView, there: Room | None
) -> Step | NeedObjects:
    """What to do about a VM that is apart or stuck, or what must be read of `nodes` first.

    Args:
        row: the VM's.
        machine: what else is known of it.
        known: has its claims and volumes.
        nodes: has the nodes.
        there: the room on the one node of its share-managers; a migration that is offered takes its part of it.
    """
    anew = _anew(row, machine)
    if row.state is State.STUCK:
        return Step(row=row, sentences=[f"a new pod is decided on by what is there then: {anew}"])
    places = targets(row)
    start = f"with its next start: {anew}"
    if len(places) > 1:
        many = f"its share-managers are on {' and '.join(places)}: no one migration can bring it to all of them"
        return Step(row=row, sentences=[many, start])
    refusal = _refusal(row, machine)
    if refusal:
        return Step(row=row, sentences=[f"not without downtime: {refusal}", start])
    assert machine.pod  # noqa: S101 - for the type checker: without one it is refused
    found = share_managers.find_share_managers(machine.pod, row.namespace, known)
    volumes = share_managers.bound_volumes(found) if isinstance(found, list) else []
    verdict = feasibility.evaluate(places[0], _cycle(machine.pod, volumes), nodes)
    if isinstance(verdict, NeedObjects):
        return verdict
    node = nodes.node(places[0])
    hostname = None if isinstance(node, NoObject) else node.metadata.label(HOSTNAME)
    full = there.refusal(places[0], machine.pod) if there else None
    if full or not verdict.feasible:
        return Step(row=row, sentences=[f"not without downtime: {(full or verdict.why).sentence}", start])
    if not hostname:
        return Step(row=row, sentences=[f"not without downtime: node {places[0]} has no label {HOSTNAME}", start])
    unjudged = _unjudged(machine.pod)
    if there:
        unjudged += [f"whether there is room was not read: {there.problem}"] if there.problem else []
        there.take(machine.pod)
    sentences = [start, f"without downtime: to {places[0]}, by this live migration", *unjudged, *machine.notes]
    return Step(row=row, sentences=sentences, migration=_migration(row, hostname))


def _cycle(pod: Pod, volumes: Sequence[ClaimVolume] = ()) -> CycleState:
    """Return the state of the pod by itself: other pods are not counted here."""
    return CycleState(IncomingPod.of(pod, "", volumes), NOT_COUNTED)


def _anew(row: VMStatus, machine: Machine) -> str:
    if machine.owner:
        return restart.restart_command(machine.owner, row.namespace, machine.run_strategy)
    return restart.restart_without_owner(row.name)


def _refusal(row: VMStatus, machine: Machine) -> str:
    """Why there is no migration to think of, whatever the node."""
    if row.migrating:
        return "it is being migrated now; look again when that is over"
    return machine.unmigratable or machine.problem


def _unjudged(pod: Pod) -> list[str]:
    """Rules that only kube-scheduler can judge: where it finds against them the VM stays where it is."""
    why: Why | None = feasibility.why_not_evaluated(_cycle(pod))
    return [f"not judged: {why.sentence}; if that forbids it, the migration fails and the VM stays"] if why else []


def _migration(row: VMStatus, hostname: str) -> dict[str, Any]:
    """Added to the VM's own node selector, and never instead of it (kubevirt.io api/core/v1 types.go)."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {"generateName": f"{row.name}-together-", "namespace": row.namespace},
        "spec": {"vmiName": row.name, "addedNodeSelector": {HOSTNAME: hostname}},
    }
