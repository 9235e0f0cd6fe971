"""Which VMs are migrated at one moment, and for each other VM that is apart the first rule that says no.

A run asks `why_not` for each VM of `in_order`, asks whether the VM's pod can run on the node, and asks `why_no_turn`.
It calls `take` for a migration that was created. So one that the API server refuses costs the other VMs nothing.
Nothing is remembered between two runs: the cluster's objects say what happened before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import inf
from operator import attrgetter
from typing import Final

from msgspec import Struct

from webhook.core.api.node import Node
from webhook.core.live_migration.kubevirt import KubeVirt, MigrationConfiguration, minor_version
from webhook.core.live_migration.migration import Migration
from webhook.core.live_migration.vm import VM
from webhook.core.observe.vm_status import State
from webhook.core.reunite.budget import MigrationBudget
from webhook.core.reunite.history import History, history_of, unix_seconds
from webhook.core.reunite.limits import (
    A_DAY,
    DAY_SECONDS,
    FAILED_VMS,
    FAILURES_IN_A_ROW,
    FIRST_VERSION,
    HELD_SECONDS,
    ReuniteLimits,
)
from webhook.core.reunite.not_yet import NotYet, Rule, why_not_asked
from webhook.core.scheduler.plugins.taint_toleration import taint_text, tolerates

_MEDIK8S: Final = "medik8s.io/"  # its operators taint a node that they remediate or take into maintenance


class Situation(Struct, frozen=True, kw_only=True):
    """A cluster at one moment.

    Attributes:
        now: seconds since 1970.
        vms: the VMs that ask for co-scheduling.
        migrations: all of the cluster.
        kubevirt: the installation, None if none was found.
        limits: what the user allows.
        nodes_of: namespace and name of a VMI -> its node, for all VMIs of the cluster.
        nodes: by name.
    """

    now: float
    vms: Sequence[VM]
    migrations: Sequence[Migration]
    kubevirt: KubeVirt | None
    limits: ReuniteLimits
    nodes_of: Mapping[tuple[str, str], str] = {}
    nodes: Mapping[str, Node] = {}


class MigrationDecisions:
    """The decisions for one situation. Each migration of a VM is taken once."""

    def __init__(self, situation: Situation) -> None:
        self._at = situation
        self._limits, self._now = situation.limits, situation.now
        self._of_vm: dict[tuple[str, str], list[Migration]] = {}
        for migration in situation.migrations:
            self._of_vm.setdefault(migration.vm, []).append(migration)
        homes = {vm.key: vm.row.share_manager_nodes[0] for vm in situation.vms if vm.row.share_manager_nodes}
        self._budget = MigrationBudget(
            self._limits, situation.kubevirt.limits if situation.kubevirt else MigrationConfiguration()
        )
        for each in situation.migrations:
            if not each.is_final and not self._is_held(each):
                # KubeVirt writes both nodes into a migration at its end.
                source = each.state.source_node or situation.nodes_of.get(each.vm)
                target = each.state.target_node or (homes.get(each.vm) if each.ours else None)
                self._budget.count(source, target, ours=each.ours)

    def _is_held(self, migration: Migration) -> bool:
        """Whether KubeVirt has not begun the migration for longer than it waits for a pod's node: it copies nothing."""
        return migration.is_queued and unix_seconds(migration.created) <= self._now - HELD_SECONDS

    def in_order(self) -> list[VM]:
        """Return the VMs that are apart, the longest apart first."""
        apart = [vm for vm in self._at.vms if vm.row.state is State.APART and vm.row.share_manager_nodes]
        return sorted(apart, key=lambda vm: (vm.row.since or "", vm.key))

    def why_not(self, vm: VM) -> NotYet | None:
        """Return the first rule that says no to a migration of this VM now, except for those of the nodes' room."""
        history = history_of(self._of_vm.get(vm.key, ()), vm.started, self._at.nodes)
        home = vm.row.share_manager_nodes[0]
        return (
            self._kubevirt
            or self._why_not_the_vm(vm)
            or self._why_not_against_others(vm, history)
            or self._why_not_the_node(vm, home)
            or self._why_not_now(vm, history)
            or self._stopped
        )

    def why_no_turn(self, vm: VM) -> NotYet | None:
        """Return that other migrations come first; None if the VM's can start now."""
        return self._budget.why_not(vm.row.node or "", vm.row.share_manager_nodes[0])

    def take(self, vm: VM) -> None:
        """Count a migration of this VM to its share-managers, which starts now."""
        self._budget.count(vm.row.node, vm.row.share_manager_nodes[0], ours=True)

    def migrations_in(self, namespace: str) -> list[Migration]:
        """Return the migrations of a namespace."""
        return [each for each in self._at.migrations if each.vm[0] == namespace]

    @cached_property
    def _kubevirt(self) -> NotYet | None:
        """Why KubeVirt is asked for nothing now."""
        found = self._at.kubevirt
        if found is None:
            return Rule.KUBEVIRT_UNKNOWN.says_no(because="no KubeVirt was found")
        version = minor_version(found.version)
        if version is None:
            return Rule.KUBEVIRT_UNKNOWN.says_no(because=f"{found.version or 'no version'} is not one of KubeVirt's")
        if version < FIRST_VERSION:
            return Rule.KUBEVIRT_TOO_OLD.says_no(version=found.version)
        return Rule.KUBEVIRT_CHANGES.says_no(because=found.changes) if found.changes else None

    def _why_not_the_vm(self, vm: VM) -> NotYet | None:
        """Why this VM is not moved, as long as it is as it is."""
        if not_asked := why_not_asked(vm.reunite, default_on=self._limits.default):
            return not_asked
        if len(vm.row.share_manager_nodes) > 1:
            return Rule.SEVERAL_NODES.says_no(nodes=" and ".join(vm.row.share_manager_nodes))
        if vm.status.phase != "Running":
            return Rule.NOT_RUNNING.says_no(phase=vm.status.phase or "not known")
        return why_not_movable(vm)

    def _why_not_against_others(self, vm: VM, history: History) -> NotYet | None:
        """Whose will the migration would be against."""
        if history.running or vm.row.migrating:
            return Rule.MIGRATING.says_no()
        if vm.must_leave:
            return Rule.EVACUATING.says_no(node=vm.must_leave)
        arrived = history.arrived
        if arrived and arrived.spec.added_node_selector and not arrived.ours:
            return Rule.TARGET_NAMED.says_no(migration=arrived.name)
        return Rule.MOVED_AGAIN.says_no(migration=arrived.name) if arrived and history.moved_again else None

    def _why_not_the_node(self, vm: VM, name: str) -> NotYet | None:
        """Why the node of the share-managers is no place to stay."""
        until, calm = self._left_until.get(name, 0.0), self._limits.apart_seconds
        if until == inf:
            return Rule.NODE_EVACUATED.says_no(node=name)
        if self._now < until + calm:
            return Rule.NODE_NOT_CALM.says_no(node=name, seconds=int(calm))
        node = self._at.nodes.get(name)
        if node is None:
            return None
        if node.ready_since and self._now < unix_seconds(node.ready_since) + calm:
            return Rule.NODE_JUST_READY.says_no(node=name, since=node.ready_since, seconds=int(calm))
        return why_tainted(vm, node)

    def _why_not_now(self, vm: VM, history: History) -> NotYet | None:
        """What has to pass before the VM is moved."""
        if len(history.failures) >= FAILURES_IN_A_ROW:
            last = history.failures[-1].name
            return Rule.FAILED_OFTEN.says_no(failures=len(history.failures), migration=last)
        ended = [each.ended for each in (history.arrived, *history.failures[-1:]) if each]
        since = max((vm.row.since or "", *ended), key=unix_seconds) if vm.row.since else ""
        if not unix_seconds(since) or self._now < unix_seconds(since) + self._limits.apart_seconds:
            return Rule.TOO_SOON.says_no(since=since or "an unknown time", seconds=int(self._limits.apart_seconds))
        cooldown = self._limits.cooldown_seconds
        arrived, home = history.arrived, history.came_home
        if arrived and history.moved_by_others and self._now < unix_seconds(arrived.ended) + cooldown:
            return Rule.MOVED_BY_OTHERS.says_no(migration=arrived.name, at=arrived.ended, seconds=int(cooldown))
        if home and self._now < unix_seconds(home.ended) + cooldown:
            return Rule.COOLDOWN.says_no(at=home.ended, seconds=int(cooldown))
        day = self._now - DAY_SECONDS
        if history.known_since and unix_seconds(history.known_since) > day:
            return Rule.ENOUGH_TODAY.says_no(count="five or more", since=history.known_since)
        today = [created for created in history.ours if unix_seconds(created) > day]
        return Rule.ENOUGH_TODAY.says_no(count=len(today), since=today[0]) if len(today) >= A_DAY else None

    @cached_property
    def _left_until(self) -> Mapping[str, float]:
        """The nodes that VMs had to leave, and when the last of these migrations ended.

        A VM that can't be migrated keeps its mark until its next start, and the mark says nothing of the node any more.
        """
        leaving = (vm.must_leave for vm in self._at.vms if not vm.status.unmigratable)
        until: dict[str, float] = {node: inf for node in leaving if node}
        for each in self._at.migrations:
            if each.evacuates:
                ended = unix_seconds(each.ended) if each.is_final else inf
                until[each.evacuates] = max(ended, until.get(each.evacuates, 0.0))
        return until

    @cached_property
    def _stopped(self) -> NotYet | None:
        """That migrations of several VMs failed within a day: something is wrong that trying does not repair."""
        day = self._now - DAY_SECONDS
        failed = [each for each in self._at.migrations if each.ours and each.failed and unix_seconds(each.ended) > day]
        vms = {each.vm for each in failed}
        if len(vms) < FAILED_VMS:
            return None
        last = max(failed, key=attrgetter("ended", "vm", "name"))
        return Rule.STOPPED.says_no(count=len(vms), migration=f"{last.vm[0]}/{last.name}")


def why_not_movable(vm: VM) -> NotYet | None:
    """Return why a migration of this VM would fail, or carry along what goes on with the VM; None if nothing is known.

    A plan asks this, too, because it holds for the migrations of users as well.
    """
    unmigratable = vm.status.unmigratable or (vm.row.held.sentence if vm.row.held else "")
    if unmigratable:
        return Rule.NOT_MIGRATABLE.says_no(because=unmigratable)
    if vm.busy:
        return Rule.VM_BUSY.says_no(because=vm.busy)
    return Rule.VM_CHANGED.says_no(field=vm.changed) if vm.changed else None


def why_tainted(vm: VM, node: Node) -> NotYet | None:
    """Return that the node has a taint for which the VM would leave it again soon; None if it has none."""
    tolerations = (vm.pod.spec.tolerations if vm.pod else None) or ()
    for taint in (node.spec.taints if node.spec else None) or ():
        if _MEDIK8S in (taint.key or "") or not tolerates(tolerations, taint):
            return Rule.TARGET_TAINTED.says_no(node=node.metadata.name, taint=taint_text(taint))
    return None
