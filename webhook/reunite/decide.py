"""Which VMs are migrated at one moment, and for each other VM that is apart the first rule that says no.

For each VM of `in_order` a run asks `why_not`, whether the VM's pod can run on the node, `why_not_now` and
`why_no_turn`. It calls `take` for a migration that was created. So one that the API server refuses costs the other VMs
nothing.
Nothing is remembered between two runs: the cluster's objects say what happened before. What one namespace has never
stops a VM of another: who may write there could forge it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from webhook.core.api.migration import FIRST_VERSION, KubeVirt, Migration, minor_version
from webhook.core.observe.vm_status import State
from webhook.reunite.settings import ReuniteSettings
from webhook.reunite.vm import VM
from webhook.reunite.waits import NotYet, Rule, longest_wait, unix_seconds

_TWO_PODS: Final = "another pod of it is on a node: that of a migration, or what is left of one"


class MigrationDecisions:
    """The decisions at one moment. Each migration of a VM is taken once."""

    def __init__(
        self,
        vms: Sequence[VM],
        migrations: Iterable[Migration],
        kubevirt: KubeVirt | None,
        limits: ReuniteSettings,
        now: float,
    ) -> None:
        """Decide for `vms`, the VMs that ask for co-scheduling.

        `migrations` are all of the cluster, `kubevirt` is None if no installation was found, and `now` is in seconds
        since 1970.
        """
        self._vms, self._kubevirt, self._limits, self._now = vms, kubevirt, limits, now
        self._taken = 0
        ours = (each for each in migrations if each.ours and not each.is_final and not self._is_old(each))
        self._running = Counter(each.vm[0] for each in ours)  # by namespace

    def in_order(self) -> list[VM]:
        """Return the VMs that are apart: the longest apart of each namespace, then the next one of each, and so on.

        So the VMs of one namespace never come before all others, whatever is written there.
        """
        apart = [vm for vm in self._vms if vm.row.state is State.APART and vm.row.share_manager_nodes]
        of_namespace: dict[str, list[VM]] = defaultdict(list)
        for vm in sorted(apart, key=lambda vm: (vm.row.since or "", vm.key)):
            of_namespace[vm.key[0]].append(vm)
        return [vm for turn in zip_longest(*of_namespace.values()) for vm in turn if vm]

    def why_not(self, vm: VM) -> NotYet | None:
        """Return the first rule about the VM itself that says no to a migration."""
        return next(self._against(vm), None)

    def why_not_now(self, vm: VM) -> NotYet | None:
        """Return why KubeVirt is asked for nothing now, or what has to pass first."""
        return self._why_not_kubevirt() or longest_wait(vm, self._limits, self._now)

    def why_no_turn(self, vm: VM) -> NotYet | None:
        """Return that other migrations come first; None if the VM's can start now."""
        running, limit = max(self._running[vm.key[0]], self._taken), self._limits.at_once
        if running < limit:
            return None
        return NotYet(Rule.NOT_ITS_TURN, f"{running} migrations of reunite come first, and {limit} is the limit")

    def take(self, vm: VM) -> None:
        """Count a migration of this VM to its share-managers, which starts now."""
        self._running[vm.key[0]] += 1
        self._taken += 1

    def _is_old(self, migration: Migration) -> bool:
        """Whether a migration that has not ended takes no turn from others any more."""
        return unix_seconds(migration.created) <= self._now - self._limits.apart_seconds

    def _why_not_kubevirt(self) -> NotYet | None:
        """Why KubeVirt is asked for nothing now."""
        found = self._kubevirt
        version = minor_version(found.version) if found else None
        if found is None or version is None:
            got = (found.version if found else "") or "none"
            return NotYet(Rule.KUBEVIRT_CHANGES, f"got {got} as KubeVirt's version: expected one that is known")
        if version < FIRST_VERSION:
            return NotYet(Rule.KUBEVIRT_TOO_OLD, f"KubeVirt {found.version} has no addedNodeSelector: expected 1.6.0")
        return NotYet(Rule.KUBEVIRT_CHANGES, f"KubeVirt changes: {found.changes}") if found.changes else None

    def _against(self, vm: VM) -> Iterator[NotYet]:
        """Yield what is against a migration: what its user says, what goes on with the VM and what ends that."""
        if not vm.says_yes and (vm.answers or not self._limits.default):
            said = next((each for each in vm.answers if each != "true"), "not set, and the default is off")
            yield NotYet(Rule.NOT_ASKED, f"the VM's annotation kubevirt-scheduler/reunite is {said}")
        if vm.busy:
            by_start = f"; its next start can bring them together: {vm.restart}" if vm.status.unmigratable else ""
            yield NotYet(Rule.NOT_MOVABLE, vm.busy + by_start)
        unfinished = (each for each in vm.migrations if not each.is_final)
        running = max(unfinished, key=lambda each: (each.created, each.name), default=None)
        if running and self._is_old(running):
            yield NotYet(
                Rule.NOT_MOVABLE,
                f"migration {running.name} has not ended: it is {running.phase or 'not begun'} and more than "
                f"{self._age(running)} min old; KubeVirt refuses another one. To end it: "
                f"virtctl migrate-cancel {vm.row.name} -n {vm.row.namespace}",
            )
        if running or vm.row.migrating:
            yield NotYet(Rule.NOT_MOVABLE, f"migration {running.name} runs" if running else _TWO_PODS)
        disrupts = self._kubevirt.disrupts if self._kubevirt else ""
        if disrupts and not vm.says_yes:
            yield NotYet(
                Rule.NOT_MOVABLE,
                f'KubeVirt\'s migrations may end or pause it ({disrupts}): only kubevirt-scheduler/reunite: "true" of '
                "the VM itself allows that",
            )
        nodes = vm.row.share_manager_nodes
        if len(nodes) > 1:
            yield NotYet(
                Rule.SEVERAL_NODES,
                f"its share-managers are on {' and '.join(nodes)}, and a migration leads to one node; a stop and a "
                f"start can bring them together: {vm.restart}",
            )

    def _age(self, migration: Migration) -> int:
        """Return the age in half hours, in minutes: an Event with another number is another Event."""
        return int(self._now - unix_seconds(migration.created)) // 1_800 * 30
