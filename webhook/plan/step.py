"""What brings a VM to the node of its share-managers again: its next start, or one live migration. Pure.

A share-manager stays on its node while a VM uses its volume, so the VM must move. Invariant: a plan has a migration
only if all share-managers of the VM are on one node. As far as is known, the VM's pod can run on this node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.core import refs
from webhook.core.api.kubevirt import HOSTNAME
from webhook.core.api.pod import Pod
from webhook.core.decision import NodeFit
from webhook.core.evidence import share_managers
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.observe import restart
from webhook.core.observe.vm_status import State, VMStatus, with_held
from webhook.core.placement import feasibility
from webhook.core.reasons import Reason, Why
from webhook.core.reunite.migration import migration_object
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.snapshot import (
    NOT_COUNTED,
    AnySnapshot,
    NoSnapshot,
    NotCounted,
    SnapshotUnavailable,
)
from webhook.core.view import ClusterView, NoObject
from webhook.terminal import printable

_EXCLUDED: Final = "a restart changes nothing: the webhook can only prefer a node that rejects the VM"


class VMDetails(Struct, frozen=True, kw_only=True):
    """What a plan needs to know of a VM beside its row.

    Attributes:
        pod: the pod as it was at its creation; None if it could not be read.
        problem: why the pod could not be read; empty if it was read.
        owner: the name of the VirtualMachine that owns the VMI, which can be restarted; None if none owns it.
        run_strategy: of the VirtualMachine; None if it could not be read.
        unmigratable: why KubeVirt would not migrate the VM; empty if no reason is known.
        notes: sentences for the user who applies the plan.
    """

    pod: Pod | None = None
    problem: str = ""
    owner: str | None = None
    run_strategy: str | None = None
    unmigratable: str = ""
    notes: Sequence[str] = ()


class Step(Struct, frozen=True, kw_only=True):
    """What to do about one VM: sentences, and the VirtualMachineInstanceMigration; or why there is none."""

    row: VMStatus
    sentences: list[str]
    migration: dict[str, Any] | None = None
    refusal: str = ""

    def lines(self) -> Iterator[str]:
        """Return the sentences as YAML comments."""
        row = self.row
        head = f"{row.namespace}/{row.name} is {row.state.value}, on {row.node or 'no node'}"
        since = f" since {row.since}" if row.since else ""
        remedy = f"; to do: {row.remedy.sentence}" if row.remedy else ""
        yield printable(f"# {head}{since}: {row.why}{remedy}")
        if row.said_by_reunite:
            yield printable(f"#   reunite: {row.said_by_reunite}")
        for sentence in self.sentences:
            yield printable(f"#   {sentence}")


def counted(snapshot: AnySnapshot) -> tuple[AnySnapshot, list[str]]:
    """Return what `step` can evaluate a node with, and a sentence for the user if the other pods are not known."""
    if not isinstance(snapshot, NoSnapshot):
        return snapshot, []
    problem = snapshot.problem if isinstance(snapshot, SnapshotUnavailable) else "no node has status.allocatable"
    no_room = "if the node has no room for the VM, the migration fails and the VM stays"
    return NOT_COUNTED, [f"other pods are not counted ({problem}); {no_room}"]


def step(row: VMStatus, vm: VMDetails, known: ClusterView, nodes: ClusterView, snapshot: AnySnapshot) -> Step:
    """Return what to do about a VM that is apart or stuck.

    Args:
        row: of the VM.
        vm: what else is known of the VM.
        known: has the claims and volumes of the VM.
        nodes: has the nodes.
        snapshot: with a Snapshot, the rules are those of a required node affinity. A migration in the plan is added to
            a ListedSnapshot. With NotCounted, only the nodes and the pod count, and a sentence names what was not
            evaluated.
    """
    restarted = _restart(row, vm)
    if row.state is State.STUCK:
        return Step(row=row, sentences=[f"the webhook decides again for a new pod: {restarted}"])
    held = row.held or _why_held(row, nodes)
    if nodes.missing:
        return Step(row=row, sentences=[])
    if held:
        return Step(
            row=with_held(row, held),
            sentences=[f"nothing to apply: {held.sentence}"],
            refusal=held.sentence,
        )
    places = row.share_manager_nodes
    start = f"with its next start: {restarted}"
    if len(places) > 1:
        many = f"its share-managers are on {' and '.join(places)}: a migration brings the VM to only one of these nodes"
        return Step(row=row, sentences=[many, start], refusal=many)
    refusal: str | NodeFit = _refusal(row, vm)
    if not refusal and vm.pod:
        refusal = _node_refusal(places[0], _cycle(vm.pod, row.namespace, known, snapshot), nodes)
    if isinstance(refusal, NodeFit):
        start, refusal = (_EXCLUDED if refusal.excluded else start), refusal.why.sentence
    if refusal or not vm.pod:
        return Step(row=row, sentences=[f"no live migration: {refusal}", start], refusal=str(refusal))
    warnings = _not_evaluated(vm.pod) if isinstance(snapshot, NotCounted) else []
    if isinstance(snapshot, ListedSnapshot):
        snapshot.add(replace(vm.pod, spec=replace(vm.pod.spec, node_name=places[0])))
    sentences = [start, f"without downtime: to {places[0]}, by this live migration", *warnings, *vm.notes]
    return Step(
        row=row, sentences=sentences, migration=migration_object(row.namespace, row.name, hostname_of(places[0], nodes))
    )


def why_not_on(node: str, pod: Pod, namespace: str, cluster: ClusterView, snapshot: AnySnapshot) -> str:
    """Return why a migration may not bring this pod to the node; empty if the pod can run there, as far as is known."""
    refusal = _node_refusal(node, _cycle(pod, namespace, cluster, snapshot), cluster)
    return refusal.why.sentence if isinstance(refusal, NodeFit) else refusal


def hostname_of(name: str, nodes: ClusterView) -> str:
    """Return the label kubernetes.io/hostname of a node; empty if it has none."""
    node = nodes.get(refs.node(name))
    return "" if isinstance(node, NoObject) else node.metadata.label(HOSTNAME) or ""


def _cycle(pod: Pod, namespace: str, known: ClusterView, snapshot: AnySnapshot) -> CycleState:
    volumes = share_managers.bound_volumes(share_managers.find_share_managers(pod, namespace, known))
    return CycleState(pod, namespace, snapshot, volumes)


def _why_held(row: VMStatus, nodes: ClusterView) -> Why | None:
    """Return why KubeVirt can move the VM nowhere, by its node: the rows of a live cluster are made without nodes."""
    node = nodes.get(refs.node(row.node or ""))
    if isinstance(node, NoObject) or (node.status and node.status.ready):
        return None
    return Reason.VM_NODE_NOT_READY.why(node=row.node)


def _node_refusal(name: str, cycle: CycleState, nodes: ClusterView) -> str | NodeFit:
    """Why the pod can't be migrated to this node, or is not known to fit there; empty if it can be migrated."""
    verdict = feasibility.evaluate(name, cycle, nodes)
    if not verdict.feasible:
        return verdict
    undecidable = None if isinstance(cycle.snapshot, NotCounted) else feasibility.why_undecidable(cycle)
    if undecidable:
        return f"only kube-scheduler can tell: {undecidable.sentence}"
    return "" if hostname_of(name, nodes) else f"node {name} has no label {HOSTNAME}"


def _restart(row: VMStatus, vm: VMDetails) -> str:
    if vm.owner:
        return restart.restart_command(vm.owner, row.namespace, vm.run_strategy)
    return restart.restart_without_owner(row.name)


def _refusal(row: VMStatus, vm: VMDetails) -> str:
    """Why the VM can't be migrated to any node; empty if it can."""
    if row.migrating:
        return "a migration of the VM runs now; make a new plan after it has ended"
    return vm.unmigratable or vm.problem


def _not_evaluated(pod: Pod) -> list[str]:
    """A sentence for the rules between pods. If they forbid the node, the VM stays on its node."""
    why = feasibility.why_not_evaluated(CycleState(pod, "", NOT_COUNTED))
    return (
        [f"not evaluated: {why.sentence}; if that forbids the node, the migration fails and the VM stays"]
        if why
        else []
    )
