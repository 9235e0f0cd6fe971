"""What `reunite` does at one moment: the migrations that it creates and deletes, and for each VM the first rule that
says no.

`decide` is a generator, because whether a pod can run on a node needs objects that only the caller can read. It yields
a VM that passed all other rules. The caller sends back None, if the VM can run on its home node, or why it can't.
Invariant: a VM has at most one migration, and the budget counts every migration that is not final.
"""

from __future__ import annotations

from collections.abc import Container, Generator, Iterable, Mapping, Sequence
from math import inf
from operator import attrgetter

from msgspec import Struct

from webhook.core.api.node import Node
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.reunite import migration
from webhook.core.reunite.budget import MigrationBudget
from webhook.core.reunite.history import History, history_of, unix_seconds
from webhook.core.reunite.limits import DAY_SECONDS, FIRST_VERSION, KubeVirtLimits, ReuniteLimits
from webhook.core.reunite.migration import Migration
from webhook.core.reunite.not_yet import NotYet, Rule, why_not_asked


class VM(Struct, frozen=True, kw_only=True):
    """One VM as `reunite` sees it: its row, and what its VirtualMachineInstance says.

    Attributes:
        row: where the VM and its share-managers are.
        started: when the VMI was created (RFC 3339): each start of a VM creates one.
        phase: of the VMI.
        reunite: the value of the annotation `kubevirt-scheduler/reunite`, None without it.
        unmigratable: why KubeVirt can't migrate the VM, by its condition LiveMigratable; empty if it can.
        evacuates: the node that the VM must leave now (status.evacuationNodeName), None if it may stay.
    """

    row: VMStatus
    started: str
    phase: str = "Running"
    reunite: str | None = None
    unmigratable: str = ""
    evacuates: str | None = None

    @property
    def must_leave(self) -> str | None:
        """The node that the VM must leave; None if it is on another (evacuation.go, hasMigratedOnEviction)."""
        return self.evacuates if self.evacuates == self.row.node else None


class Situation(Struct, frozen=True, kw_only=True):
    """A cluster at one moment.

    Attributes:
        now: seconds since 1970.
        vms: the VMs that ask for co-scheduling.
        migrations: all of the cluster.
        nodes_of: namespace and name of a VMI -> its node, for all VMIs of the cluster.
        nodes: by name.
        drained: the uids of `drains.drained`. After a restart of the program those are missing whose node is neither
            cordoned any more nor was not Ready: they count as moves away, until the VM comes home.
        not_begun: namespace and name of a VMI -> when a migration was deleted that KubeVirt had not begun. A deleted
            migration leaves no other trace. After a restart of the program this is empty: one try too many.
    """

    now: float
    vms: Sequence[VM]
    migrations: Sequence[Migration]
    kubevirt: KubeVirtLimits
    limits: ReuniteLimits
    nodes_of: Mapping[tuple[str, str], str] = {}
    nodes: Mapping[str, Node] = {}
    drained: Container[str] = ()
    not_begun: Mapping[tuple[str, str], float] = {}


class CreateMigration(Struct, frozen=True, kw_only=True):
    """Create a migration of this name: it brings the VM to the node `target`."""

    vm: VM
    target: str
    name: str
    moved_away: int


class DeleteMigration(Struct, frozen=True, kw_only=True):
    """Delete a migration of ours that virt-controller has not begun after a minute: the cluster changes meanwhile."""

    migration: Migration


class Plan(Struct, frozen=True, kw_only=True):
    """What to do now. `waiting`: for each VM that is apart and is not moved now, the first rule that says no."""

    creates: Sequence[CreateMigration]
    deletes: Sequence[DeleteMigration]
    waiting: Mapping[tuple[str, str], NotYet]


def decide(situation: Situation) -> Generator[VM, NotYet | None, Plan]:
    """Return what to do. The caller is asked about each VM that passed all other rules, the longest apart first."""
    by_vm = _by_vm(situation.migrations)
    calm = _Evacuations(situation)
    stopped = _stopped(situation)
    rows = {(vm.row.namespace, vm.row.name): vm.row.node for vm in situation.vms if vm.row.node}
    nodes_of = {**rows, **situation.nodes_of}  # while a VM moves, its row can be on the target already
    running = [vmim for vmim in situation.migrations if not vmim.is_final]
    homes_of = {
        (vm.row.namespace, vm.row.name): vm.row.share_manager_nodes[0]
        for vm in situation.vms
        if vm.row.share_manager_nodes
    }
    budget = MigrationBudget(running, situation.limits, situation.kubevirt, nodes_of, homes_of)
    creates: list[CreateMigration] = []
    waiting: dict[tuple[str, str], NotYet] = {}
    for vm in sorted(_apart(situation.vms), key=lambda vm: (vm.row.since or "", vm.row.namespace, vm.row.name)):
        key = (vm.row.namespace, vm.row.name)
        history = history_of(by_vm.get(key, ()), vm.started, situation.drained)
        home = vm.row.share_manager_nodes[0]
        why = _why_not_the_vm(vm, situation) or _why_not_against_others(vm, history, situation.limits)
        why = why or calm.why_not(home) or _why_not_now(vm, history, situation)
        why = why or stopped or budget.why_not(vm.row.node or "", home)
        why = why or (yield vm)
        if why:
            waiting[key] = why
            continue
        budget.take(vm.row.node or "", home)
        name = migration.next_name(vm.row.name, (vmim for vmim in situation.migrations if vmim.namespace == key[0]))
        creates.append(CreateMigration(vm=vm, target=home, name=name, moved_away=history.moved_away))
    return Plan(creates=creates, deletes=_not_begun(running, situation.now), waiting=waiting)


def _apart(vms: Iterable[VM]) -> Iterable[VM]:
    return (vm for vm in vms if vm.row.state is State.APART and vm.row.share_manager_nodes)


def _by_vm(migrations: Iterable[Migration]) -> dict[tuple[str, str], list[Migration]]:
    by_vm: dict[tuple[str, str], list[Migration]] = {}
    for vmim in migrations:
        by_vm.setdefault((vmim.namespace, vmim.vmi), []).append(vmim)
    return by_vm


def _why_not_the_vm(vm: VM, situation: Situation) -> NotYet | None:
    """Return why this VM is never moved, as long as it is as it is."""
    version = situation.kubevirt.version
    if version is None:
        return Rule.KUBEVIRT_UNKNOWN.says_no()
    if version < FIRST_VERSION:
        return Rule.KUBEVIRT_TOO_OLD.says_no(version=".".join(map(str, version)))
    not_asked = why_not_asked(vm.reunite, default_on=situation.limits.default_on)
    if not_asked:
        return not_asked
    if len(vm.row.share_manager_nodes) > 1:
        return Rule.SEVERAL_NODES.says_no(nodes=" and ".join(vm.row.share_manager_nodes))
    if vm.phase != "Running":
        return Rule.NOT_RUNNING.says_no(phase=vm.phase or "not known")
    unmigratable = vm.unmigratable or (vm.row.held.sentence if vm.row.held else "")
    return Rule.NOT_MIGRATABLE.says_no(because=unmigratable) if unmigratable else None


def _why_not_against_others(vm: VM, history: History, limits: ReuniteLimits) -> NotYet | None:
    """Return whose will the migration would be against."""
    if history.running or vm.row.migrating:
        return Rule.MIGRATING.says_no()
    if vm.must_leave:
        return Rule.EVACUATING.says_no(node=vm.must_leave)
    if history.named:
        return Rule.TARGET_NAMED.says_no(migration=history.named.name)
    if history.moved_away < limits.moved_away:
        return None
    rule = Rule.MOVED_AWAY_OR_DRAINED if history.no_reason else Rule.MOVED_AWAY
    return rule.says_no(times=history.moved_away)


def _why_not_now(vm: VM, history: History, situation: Situation) -> NotYet | None:
    """Return what has to pass before the VM is moved."""
    limits, now = situation.limits, situation.now
    since = max(vm.row.since or "", history.arrived or "", key=unix_seconds) if vm.row.since else ""
    if not unix_seconds(since) or now < unix_seconds(since) + limits.apart_seconds:
        return Rule.TOO_SOON.says_no(since=since or "an unknown time", seconds=int(limits.apart_seconds))
    if history.known_since and now < unix_seconds(history.known_since) + limits.cooldown_seconds:
        return Rule.MOVED_OFTEN.says_no(since=history.known_since, seconds=int(limits.cooldown_seconds))
    if history.evicted and now < unix_seconds(history.evicted) + limits.cooldown_seconds:
        return Rule.EVICTED.says_no(at=history.evicted, seconds=int(limits.cooldown_seconds))
    if history.came_home and now < unix_seconds(history.came_home.ended_or_created) + limits.cooldown_seconds:
        at = history.came_home.ended_or_created
        return Rule.COOLDOWN.says_no(at=at, seconds=int(limits.cooldown_seconds))
    if history.failures:
        last = history.failures[-1].ended_or_created
        wait = min(limits.backoff_seconds * 2 ** (len(history.failures) - 1), DAY_SECONDS)
        if now < unix_seconds(last) + wait:
            return Rule.BACKOFF.says_no(failures=len(history.failures), at=last, seconds=int(wait))
    given_up = situation.not_begun.get((vm.row.namespace, vm.row.name))
    if given_up is not None and now < given_up + limits.backoff_seconds:
        return Rule.NOT_BEGUN.says_no(seconds=int(limits.backoff_seconds))
    if limits.windows and not any(window.contains(now) for window in limits.windows):
        return Rule.OUTSIDE_WINDOW.says_no(windows=", ".join(window.text for window in limits.windows))
    return None


class _Evacuations:
    """The nodes that VMs had to leave, when the last of these migrations ended, and since when a node is Ready.

    A VM that can't be migrated keeps its mark until its next start, and the mark says nothing of the node any more.
    """

    def __init__(self, situation: Situation) -> None:
        leaving = (vm.must_leave for vm in situation.vms if not vm.unmigratable)
        self._until: dict[str, float] = {node: inf for node in leaving if node}
        self._now, self._calm = situation.now, situation.limits.apart_seconds
        self._nodes = situation.nodes
        for vmim in situation.migrations:
            if vmim.evacuates:
                ended = unix_seconds(vmim.ended_or_created) if vmim.is_final else inf
                self._until[vmim.evacuates] = max(ended, self._until.get(vmim.evacuates, 0.0))

    def why_not(self, node: str) -> NotYet | None:
        """Return that VMs leave this node, or that they left it or it became Ready too lately; None if it is calm."""
        until = self._until.get(node, 0.0)
        if until == inf:
            return Rule.NODE_EVACUATED.says_no(node=node)
        if self._now < until + self._calm:
            return Rule.NODE_NOT_CALM.says_no(node=node, seconds=int(self._calm))
        since = self._nodes[node].ready_since if node in self._nodes else None
        if since and self._now < unix_seconds(since) + self._calm:
            return Rule.NODE_JUST_READY.says_no(node=node, since=since, seconds=int(self._calm))
        return None


def _stopped(situation: Situation) -> NotYet | None:
    """Return that too many migrations of ours failed within a day: something is wrong that trying does not repair."""
    day = situation.now - DAY_SECONDS
    failed = [vmim for vmim in situation.migrations if vmim.ours and vmim.failed]
    failed = [vmim for vmim in failed if unix_seconds(vmim.ended_or_created) > day]
    if len(failed) < situation.limits.failures:
        return None
    last = max(failed, key=attrgetter("ended_or_created", "namespace", "name"))
    return Rule.STOPPED.says_no(failures=len(failed), migration=f"{last.namespace}/{last.name}")


def _not_begun(running: Iterable[Migration], now: float) -> list[DeleteMigration]:
    late = now - migration.PLACING_SECONDS
    waiting = (vmim for vmim in running if vmim.ours and vmim.is_queued and not vmim.deleted)
    begun_late = [vmim for vmim in waiting if unix_seconds(vmim.created) <= late]
    return [DeleteMigration(migration=vmim) for vmim in sorted(begun_late, key=attrgetter("namespace", "name"))]
