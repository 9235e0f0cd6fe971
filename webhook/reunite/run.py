"""The command reunite: read a cluster once, decide about each VM that is apart, act, and tell it."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final, TextIO

from msgspec.structs import replace

from webhook.component_base.client.api import Api
from webhook.component_base.errors import UserError, printable
from webhook.core.api.migration import migration_object, next_name
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.observe.vm_status import VMStatus
from webhook.invocation import Invocation
from webhook.kube.collect import collect_objects
from webhook.kube.reader import connect_for_terminal
from webhook.objects.cluster import Cluster
from webhook.objects.kinds import EVENT, KUBEVIRT, MIGRATION, VIRTUAL_MACHINE_INSTANCE, WEBHOOK_CONFIGURATION
from webhook.objects.unread import require_pods, require_share_managers, webhook_settings
from webhook.objects.vm_rows import asking, chosen, vm_rows, where_else
from webhook.reunite import reports
from webhook.reunite.decide import MigrationDecisions
from webhook.reunite.home import why_not_home
from webhook.reunite.reports import REPEAT_SECONDS, EventReason, VMReport
from webhook.reunite.settings import ReuniteSettings
from webhook.reunite.vm import VM, is_terminating, parts, vms_of
from webhook.reunite.waits import unix_seconds
from webhook.reunite.writer import Result, Writer, Written
from webhook.settings import namespace_in_words, vm_names
from webhook.vms.output import names_of, put

_EVENTS: Final = 500  # in one run; the next run writes those that are left
_ROLE: Final = "kubevirt-coschedule-reunite"


def run(settings: ReuniteSettings, *, stdout: TextIO, stderr: TextIO) -> int:
    """Carry out one run. Returns 0; 1 if something that was decided could not be done.

    Raises:
        UserError: no cluster can be reached, its objects can't be read, or a right is missing.
    """
    if settings.manifests:
        described = Cluster.load(settings.manifests, longhorn_namespace=settings.longhorn_namespace)
        require_pods(described)
        made = described.objects.bundle
        one = ReuniteRun(described, settings, unix_seconds(made.at) if made else time.time(), None)
        asyncio.run(one.decide(str(settings.manifests)))
        one.show(described.origin, stdout)
        return 0
    logging.getLogger("webhook").addHandler(logging.NullHandler())
    with connect_for_terminal(settings.client_config) as (runner, api, origin):
        return runner.run(_run_live(api, origin, settings, stdout, stderr))


async def _run_live(api: Api, origin: str, settings: ReuniteSettings, stdout: TextIO, stderr: TextIO) -> int:
    writer = Writer(api, dry_run=settings.dry_run == "server")
    writes_events = api.in_pod or settings.dry_run == "none"
    wanted = parts(of_webhook=settings.policy is None)
    objects = await collect_objects(api, origin, wanted, settings.longhorn_namespace)
    cluster = Cluster(objects, longhorn_namespace=settings.longhorn_namespace)
    one = ReuniteRun(cluster, settings, time.time(), None if settings.dry_run == "client" else writer)
    await one.decide(origin)
    one.show(origin, stdout)
    lost = await one.write_events(writer) if writes_events else []
    if lacking := next((each for each in lost if each.lacks_right), None):
        raise UserError(f"{origin}: {lacking.because}; expected to create Events: the ClusterRole {_ROLE} grants it")
    if lost:  # a quota or a policy of one namespace: what was asked is answered, and done
        stderr.write(printable(f"{origin}: Events not written: {len(lost)}; the first: {lost[0].because}") + "\n")
    return int(any(each.failed for each in one.reports))


class ReuniteRun:
    """One run. `reports` has what came of it, for each VM that is apart."""

    def __init__(self, cluster: Cluster, settings: ReuniteSettings, now: float, writer: Writer | None) -> None:
        """`now`: seconds since 1970. Without a `writer` nothing is done."""
        self.reports: list[VMReport] = []
        self._cluster, self._settings, self._now, self._writer = cluster, settings, now, writer
        self._rows: list[VMStatus] = []
        self._chosen = ""  # in words, after the word VM
        self._written = reports.written_at(cluster.objects.of(EVENT).values())
        self._snapshot = cluster.snapshot()

    async def decide(self, origin: str) -> None:
        """Decide about every VM, and act.

        Raises:
            UserError: objects that a decision needs are not known, or a VM does not exist.
        """
        settings, names = self._settings, vm_names(self._settings.names)
        for kind in (part.kind for part in parts(of_webhook=settings.policy is None)):
            if problem := self._cluster.objects.unread(kind):
                expected = f"expected to list them: the ClusterRole {_ROLE} grants it"
                expected = "expected to read it, or --opt-in-all" if kind is WEBHOOK_CONFIGURATION else expected
                raise UserError(f"{origin}: {kind.title}: {problem}; {expected}")
        require_share_managers(self._cluster)
        namespace = settings.namespace_of(self._cluster.namespace)
        policy = settings.policy or webhook_settings(self._cluster).policy
        rows = vm_rows(self._cluster, policy, settings.selector)
        here, where = chosen(rows, namespace, names), namespace_in_words(namespace)
        existing = {row.vm.name for row in here}
        if missing := [name for name in names if name not in existing]:
            none = f"no VM of this name in {where}, so nothing was done"
            raise UserError(*(f"{origin}: {name}: {none}{where_else(name, namespace, rows)}" for name in missing))
        self._chosen, self._rows = f"{settings.whose} in {where}", asking(here)
        objects = self._cluster.objects
        kubevirt = next(iter(objects.of(KUBEVIRT).values()), None)
        vms = vms_of(self._cluster, self._rows)
        decisions = MigrationDecisions(vms, objects.of(MIGRATION).values(), kubevirt, settings, self._now)
        for vm in decisions.in_order():
            why, wait = decisions.why_not(vm) or why_not_home(vm, self._cluster), decisions.why_not_now(vm)
            left_out = f"; left out: {wait}" if settings.now and wait and wait.ends else ""
            why = why or (None if left_out else wait) or (None if settings.now else decisions.why_no_turn(vm))
            if why:
                self._tell(vm, EventReason.WAITING, str(why))
            else:
                await self._migrate(vm, decisions, left_out)

    def show(self, origin: str, stdout: TextIO) -> None:
        """Print what came of the run."""
        output, at, invocation = self._settings.output, self._cluster.objects.at, Invocation.of(self._settings)
        told = [each.shown_by(invocation) for each in self.reports]
        if output == "yaml":
            reports.print_list(told, self._nothing_to_do(), origin, invocation, stdout)
        elif output == "name":
            put(names_of(each.row for each in told), stdout)
        elif output == "json":
            reports.print_json(told, self._rows, stdout, cluster=origin, at=at, dryRun=self._settings.dry_run)
        else:
            reports.print_table(told, self._nothing_to_do(), at, stdout, wide=output == "wide")

    def _nothing_to_do(self) -> str:
        return reports.nothing_to_do(self._rows, self._chosen)

    async def write_events(self, writer: Writer) -> list[Written]:
        """Write the Events that the cluster does not have. Returns the results of those that were not written.

        A namespace that is being deleted takes no Events.
        """
        new = []
        for report in self.reports:
            vmi = self._cluster.objects.get(VIRTUAL_MACHINE_INSTANCE, report.row.name, report.row.namespace)
            event = reports.event_of(report, (vmi.metadata.uid if vmi else None) or "", dry_run=self._settings.dry_run)
            same = event.namespace, event.uid, event.reason, event.message
            is_new = self._written.get(same, 0.0) <= self._now - REPEAT_SECONDS
            if event.uid and is_new and not is_terminating(self._cluster, report.row.namespace):
                new.append(event)
        written = [await writer.write_event(event, time.time()) for event in new[:_EVENTS]]
        return [each for each in written if each.result is not Result.DONE]

    def _tell(self, vm: VM, reason: EventReason, message: str) -> None:
        self.reports.append(VMReport(vm.row, reason, message))

    async def _migrate(self, vm: VM, decisions: MigrationDecisions, left_out: str) -> None:
        namespace, hostname = vm.row.namespace, vm.hostname_at_home
        where = f"from node {vm.row.node} to node {vm.home}, that of its share-manager"
        name = next_name(vm.row.name, vm.names)
        message, written = f"migration {name}: {where}", Written(Result.DONE)
        if self._writer:
            new = migration_object(namespace, vm.row.name, hostname, name=name)
            written = await self._writer.create(namespace, new)
        if written.result is not Result.REFUSED:  # without an answer it may exist
            decisions.take(vm)
            self._count(vm)
        if self._settings.output == "yaml":
            listed = migration_object(namespace, vm.row.name, hostname)
            self.reports.append(VMReport(vm.row, EventReason.DRY_RUN, f"{where}{left_out}", listed))
        elif written.result is Result.EXISTS:
            self._tell(vm, EventReason.WAITING, f"something else was faster: {written.because}")
        elif written.result is not Result.DONE:
            done = "not done" if written.result is Result.REFUSED else "not known to be done"
            self._tell(vm, EventReason.REFUSED, f"{message}; {done}: {written.because}")
        elif self._settings.dry_run == "none":
            self._tell(vm, EventReason.STARTED, f"{message}; to forbid it: {vm.forbids}")
        else:
            self._tell(vm, EventReason.DRY_RUN, f"would create {message}")

    def _count(self, vm: VM) -> None:
        """Count the target pod on the node of the share-managers."""
        if vm.pod and isinstance(self._snapshot, ListedSnapshot):
            self._snapshot.add(replace(vm.pod, spec=replace(vm.pod.spec, node_name=vm.home)))
