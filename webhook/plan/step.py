"""What brings a VM to the node of its share-managers again: its next start, or one live migration.

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
from webhook.core.api.virtual_machine import LIVE_MIGRATABLE
from webhook.core.decision import NodeFit
from webhook.core.evidence import share_managers
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.live_migration.kubevirt import minor_version
from webhook.core.live_migration.migration import migration_object
from webhook.core.live_migration.vm import VM
from webhook.core.observe import restart
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.placement import feasibility
from webhook.core.reunite.decide import why_not_movable, why_tainted
from webhook.core.reunite.limits import FIRST_VERSION
from webhook.core.reunite.not_yet import Rule
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.never_required import why_never_required
from webhook.core.scheduler.state.snapshot import AnySnapshot
from webhook.core.view import ClusterView, NoObject
from webhook.objects.kinds import KUBEVIRT, VIRTUAL_MACHINE_INSTANCE
from webhook.objects.manifests import Manifests
from webhook.plan.vms import vm_from
from webhook.terminal import printable

_EXCLUDED: Final = "a restart changes nothing: this node rejects the VM"


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
        yield printable(f"# {head} since {row.since}" if row.since else f"# {head}")
        remedy = [f"to do: {row.remedy.sentence}"] if row.remedy else []
        reunite = [f"reunite: {row.said_by_reunite}"] if row.said_by_reunite else []
        for sentence in (f"why: {row.why}", *remedy, *reunite, *self.sentences):
            yield printable(f"#   {sentence}")


def plan_steps(cluster: Manifests, rows: Sequence[VMStatus]) -> tuple[list[Step], str]:
    """Return a step for each of these VMs, which are apart or stuck; and KubeVirt's version, empty if it is not known.

    A migration takes resources of its target node from the later ones. It stays in the snapshot of the cluster.
    """
    version = next((each.version for each in cluster.objects.of(KUBEVIRT).values()), "")
    snapshot = cluster.snapshot()
    return [_step(vm_from(cluster, row), version, cluster, snapshot) for row in rows], version


def _step(vm: VM, version: str, cluster: Manifests, snapshot: AnySnapshot) -> Step:
    row, places, pod = vm.row, vm.row.share_manager_nodes, vm.pod_at_create
    restarted = _restart(vm)
    if row.state is State.STUCK:
        return Step(row=row, sentences=[f"the webhook decides again for a new pod: {restarted}"])
    if row.held:
        return Step(row=row, sentences=[f"nothing to apply: {row.held.sentence}"], refusal=row.held.sentence)
    start = f"with its next start: {restarted}"
    if len(places) > 1:
        many = f"its share-managers are on {' and '.join(places)}: a migration brings the VM to only one of these nodes"
        return Step(row=row, sentences=[many, start], refusal=many)
    refusal: str | NodeFit = _refusal(vm, version)
    if not refusal and pod:
        refusal = _node_refusal(places[0], _cycle(pod, row.namespace, cluster, snapshot), cluster) or _taint(
            vm, cluster
        )
    if isinstance(refusal, NodeFit):
        start, refusal = (_EXCLUDED if refusal.excluded else start), refusal.why.sentence
    if refusal or not pod:
        return Step(row=row, sentences=[f"no live migration: {refusal}", start], refusal=str(refusal))
    if isinstance(snapshot, ListedSnapshot):
        snapshot.add(replace(pod, spec=replace(pod.spec, node_name=places[0])))
    found = f"without downtime: to {places[0]}, by this live migration"
    migration = migration_object(row.namespace, row.name, hostname_of(places[0], cluster))
    return Step(row=row, sentences=[start, found, *_unread(vm, cluster)], migration=migration)


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


def _node_refusal(name: str, cycle: CycleState, nodes: ClusterView) -> str | NodeFit:
    """Why the pod can't be migrated to this node, or is not known to fit there; empty if it can be migrated."""
    verdict = feasibility.evaluate(name, cycle, nodes)
    if not verdict.feasible:
        return verdict
    undecidable = why_never_required(cycle)
    if undecidable:
        return f"only kube-scheduler can tell: {undecidable.sentence}"
    return "" if hostname_of(name, nodes) else f"node {name} has no label {HOSTNAME}"


def _restart(vm: VM) -> str:
    if vm.owner:
        return restart.restart_command(vm.owner, vm.row.namespace, vm.run_strategy)
    return restart.restart_without_owner(vm.row.name)


def _refusal(vm: VM, version: str) -> str:
    """Why the VM can't be migrated to any node; empty if it can."""
    if vm.row.migrating:
        return "a migration of the VM runs now; make a new plan after it has ended"
    found = minor_version(version)
    if found and found < FIRST_VERSION:
        return Rule.KUBEVIRT_TOO_OLD.says_no(version=version).sentence
    why = why_not_movable(vm)
    return why.sentence if why else ""


def _taint(vm: VM, nodes: ClusterView) -> str:
    """Why the VM would not stay on the node of its share-manager; empty if nothing is known."""
    node = nodes.get(refs.node(vm.row.share_manager_nodes[0]))
    why = None if isinstance(node, NoObject) else why_tainted(vm, node)
    return why.sentence if why else ""


def _unread(vm: VM, cluster: Manifests) -> list[str]:
    """A sentence if the VM's VirtualMachineInstance is not known."""
    objects, row = cluster.objects, vm.row
    if objects.get(VIRTUAL_MACHINE_INSTANCE, row.name, row.namespace):
        return []
    problem = objects.unread(VIRTUAL_MACHINE_INSTANCE)
    unknown = f"could not be read: {problem}" if problem else "is not known: no VMI is described"
    return [f"the VM's condition {LIVE_MIGRATABLE} {unknown}"]
