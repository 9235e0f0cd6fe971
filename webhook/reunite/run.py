"""The command reunite: read a cluster once, decide about each VM that is apart or stuck, act, and tell it."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, Final, TextIO

from msgspec.structs import replace

from webhook.component_base.client.api import Api
from webhook.component_base.client.errors import ApiError
from webhook.component_base.errors import UserError
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core.api.pod import Pod
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.live_migration.migration import migration_object, next_name
from webhook.core.live_migration.vm import VM
from webhook.core.observe.vm_status import State
from webhook.core.opt_in import Policy
from webhook.core.reunite import reports
from webhook.core.reunite.decide import MigrationDecisions
from webhook.core.reunite.history import unix_seconds
from webhook.core.reunite.not_yet import NotYet, Rule
from webhook.core.reunite.reports import EventReason, EventsBefore, VMReport
from webhook.core.reunite.stuck import decide_restart
from webhook.kube.collect import collect_objects
from webhook.kube.reader import connect_for_terminal
from webhook.objects.kinds import EVENT, MIGRATION, POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, APIResource
from webhook.objects.manifests import Manifests
from webhook.objects.vm_rows import pods_of_vms, require_pods
from webhook.plan.step import hostname_of, why_not_on
from webhook.reunite import output
from webhook.reunite.facts import first_unread, parts, situation_of
from webhook.reunite.settings import ReuniteSettings
from webhook.reunite.writer import Result, Writer, Written
from webhook.telemetry.log import start_log

_STARTS_AGAIN_SECONDS: Final = (
    300.0  # the longest wait of KubeVirt (watch/vm/vm.go, defaultMaxCrashLoopBackoffDelay...)
)
_EVENTS: Final = 500  # in one run; the next run writes those that are left
_WOULD: Final = {"migrate": "create ", "restart": "restart the VM: "}
_ROLE: Final = "kubevirt-coschedule-reunite"
_STUCK_ROLE: Final = "kubevirt-coschedule-restart-stuck"


def run(settings: ReuniteSettings, *, stdout: TextIO) -> int:
    """Carry out one run. Returns 0; 1 if something that was decided could not be done.

    Raises:
        UserError: no cluster can be reached, its objects can't be read, or a right is missing.
    """
    if settings.manifests:
        described = Manifests.load(settings.manifests, longhorn_namespace=settings.longhorn_namespace)
        require_pods(described, str(settings.manifests))
        made = described.objects.bundle
        one = Run(described, settings, unix_seconds(made.at) if made else time.time(), None)
        asyncio.run(one.decide(str(settings.manifests)))
        output.print_table(one.reports, stdout)
        return 0
    kubeconfig = Kubeconfig(file=settings.kubeconfig, context=settings.context)
    logging.getLogger("webhook").addHandler(logging.NullHandler())
    with connect_for_terminal(kubeconfig) as (runner, api, origin):
        return runner.run(_run_live(api, origin, settings, stdout))


async def _run_live(api: Api, origin: str, settings: ReuniteSettings, stdout: TextIO) -> int:
    writer = Writer(api, dry_run=settings.dry_run == "server")
    writes_events = api.in_pod or settings.dry_run == "none"
    await _check_rights(writer, origin, settings, events=writes_events)
    objects = await collect_objects(api, origin, parts(), settings.longhorn_namespace)
    cluster = Manifests(objects, longhorn_namespace=settings.longhorn_namespace)
    one = Run(cluster, settings, time.time(), None if settings.dry_run == "client" else writer)
    await one.decide(origin)
    if api.in_pod:
        start_log("info")
        output.log(one.reports, dry_run=settings.dry_run != "none")
    else:
        output.print_table(one.reports, stdout)
    lost = await one.write_events(writer) if writes_events else ""
    if lost:
        raise UserError(f"{origin}: an Event was not written: {lost}")
    return int(any(each.failed for each in one.reports))


async def _check_rights(writer: Writer, origin: str, settings: ReuniteSettings, *, events: bool) -> None:
    """Raise UserError for the first right that is missing to write what the run may write."""
    needed: list[tuple[str, APIResource[Any], str]] = [("create", EVENT, _ROLE)] if events else []
    if settings.dry_run != "client":
        needed.append(("create", MIGRATION, _ROLE))
        if settings.restart_stuck:
            needed.append(("delete", POD, _STUCK_ROLE))
    for verb, kind, role in needed:
        try:
            missing = await writer.missing_right(verb, kind)
        except ApiError as problem:
            raise UserError(f"{origin}: {problem}; expected to learn which rights the account has") from None
        if missing:
            raise UserError(
                f"{origin}: the account may not {verb} {kind.resource} in all namespaces; the ClusterRole {role} "
                "grants it: apply the manifests with components/reunite"
            )


class Run:
    """One run. `reports` has what came of it, in order: what ended, then each VM that is stuck or apart."""

    def __init__(self, cluster: Manifests, settings: ReuniteSettings, now: float, writer: Writer | None) -> None:
        """`now`: seconds since 1970. Without a `writer` nothing is done."""
        self.reports: list[VMReport] = []
        self._cluster, self._settings, self._now, self._writer = cluster, settings, now, writer
        self._before = EventsBefore(cluster.objects.of(EVENT).values(), now)
        self._snapshot = cluster.snapshot()

    async def decide(self, origin: str) -> None:
        """Decide about every VM, and act.

        Raises:
            UserError: objects that a decision needs are not known.
        """
        if lacking := first_unread(self._cluster):
            kind, problem = lacking
            raise UserError(
                f"{origin}: {kind.title}: {problem}; expected to list them: the ClusterRole {_ROLE} grants it"
            )
        policy = Policy(longhorn_namespace=self._settings.longhorn_namespace, opt_in_all=self._settings.opt_in_all)
        situation = situation_of(self._cluster, policy, self._settings.limits(), self._now)
        self.reports += reports.ended(situation)
        if self._settings.restart_stuck:
            stuck = [(vm, vm.pod) for vm in situation.vms if vm.row.state is State.STUCK and vm.pod]
            for vm, pod in sorted(stuck, key=lambda each: (each[0].row.since or "", each[0].row.pod)):
                await self._restart(vm, pod)
        decisions = MigrationDecisions(situation)
        for vm in decisions.in_order():
            why = decisions.why_not(vm) or self._why_not_placeable(vm) or decisions.why_no_turn(vm)
            if why:
                self._tell(vm.key, "none", EventReason.WAITING, str(why))
            else:
                await self._migrate(vm, decisions)

    async def write_events(self, writer: Writer) -> str:
        """Write the Events that the cluster does not have. Returns why the first was not written; empty if all were."""
        lost, written = "", 0
        for report in self.reports:
            vmi = self._cluster.objects.get(VIRTUAL_MACHINE_INSTANCE, report.vm, report.namespace)
            event = reports.event_of(report, (vmi.metadata.uid if vmi else None) or "", dry_run=self._settings.dry_run)
            if event.uid and written < _EVENTS and self._before.is_new(event, once=report.action == "ended"):
                written += 1
                result = await writer.write_event(event, time.time())
                lost = lost or result.because
        return lost

    def _tell(
        self, key: tuple[str, str], action: str, reason: EventReason, message: str, *, failed: bool = False
    ) -> None:
        report = VMReport(namespace=key[0], vm=key[1], action=action, reason=reason, message=message, failed=failed)
        self.reports.append(report)

    def _why_not_placeable(self, vm: VM) -> NotYet | None:
        """Why the VM's pod is not known to run on the node of its share-managers."""
        pod = vm.pod_at_create
        if pod is None:
            return Rule.NOT_PLACEABLE.says_no(because=f"pod {vm.row.pod} is not there any more")
        if not isinstance(self._snapshot, ListedSnapshot):
            return Rule.NOT_PLACEABLE.says_no(because="the pods and resources of the nodes are not known")
        refusal = why_not_on(vm.row.share_manager_nodes[0], pod, vm.row.namespace, self._cluster, self._snapshot)
        return Rule.NOT_PLACEABLE.says_no(because=refusal) if refusal else None

    async def _migrate(self, vm: VM, decisions: MigrationDecisions) -> None:
        home = vm.row.share_manager_nodes[0]
        name = next_name(vm.row.name, decisions.migrations_in(vm.row.namespace))
        message = f"migration {name}: from node {vm.row.node} to node {home}, that of its share-manager"
        written = Written(Result.DONE)
        if self._writer:
            new = migration_object(vm.row.namespace, vm.row.name, hostname_of(home, self._cluster), name=name)
            written = await self._writer.create(vm.row.namespace, new)
        if written.result is not Result.REFUSED:  # without an answer it may exist
            decisions.take(vm)
            self._count(vm.pod_at_create, home)
        self._tell_done(vm.key, "migrate", EventReason.STARTED, message, written)

    async def _restart(self, vm: VM, pod: Pod) -> None:
        key, default_on = vm.key, self._settings.default
        decided = self._why_no_restart() or decide_restart(vm, pod, self._now, self._cluster, default_on=default_on)
        if isinstance(decided, NotYet):
            self._tell(key, "none", EventReason.WAITING, str(decided))
            return
        written = await self._writer.delete_pod(pod.metadata) if self._writer else Written(Result.DONE)
        if written.result in {Result.DONE, Result.UNKNOWN}:
            self._count(pod, decided.node)
        self._tell_done(key, "restart", EventReason.RESTARTED, decided.sentence, written)

    def _why_no_restart(self) -> NotYet | None:
        """Return that an earlier run restarted a VM whose new pod does not exist yet: that VM takes room, too."""
        pods = pods_of_vms(self._cluster)
        for key, at in self._before.restarts.items():
            exists = self._cluster.objects.get(VIRTUAL_MACHINE, key[1], key[0]) is not None
            if exists and key not in pods and self._now < unix_seconds(at) + _STARTS_AGAIN_SECONDS:
                return Rule.RESTART_GOES_ON.says_no(vm="/".join(key), at=at)
        return None

    def _count(self, pod: Pod | None, node: str) -> None:
        """Count a pod that will be on this node."""
        if pod and isinstance(self._snapshot, ListedSnapshot):
            self._snapshot.add(replace(pod, spec=replace(pod.spec, node_name=node)))

    def _tell_done(
        self, key: tuple[str, str], action: str, reason: EventReason, message: str, written: Written
    ) -> None:
        """Tell what came of a request, or what a dry run would have asked for."""
        if written.result is Result.DONE and self._settings.dry_run != "none":
            self._tell(key, action, EventReason.DRY_RUN, f"would {_WOULD[action]}{message}")
        elif written.result is Result.DONE:
            self._tell(key, action, reason, message)
        elif written.result is Result.EXISTS:
            self._tell(key, "none", EventReason.WAITING, f"something else was faster: {written.because}")
        else:
            self._tell(key, "none", EventReason.REFUSED, f"{message}; not done: {written.because}", failed=True)
