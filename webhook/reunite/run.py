"""The command reunite: rounds until a signal, or one round that is only printed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, TextIO

from webhook.app.background import Background
from webhook.app.lifecycle import log_info, set_on_signal
from webhook.component_base.client.api import Api
from webhook.component_base.errors import UserError
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core.opt_in import Policy
from webhook.kube.events import EventRecorder
from webhook.kube.metrics import CacheMetrics, event_families
from webhook.kube.reader import connect_for_terminal
from webhook.reunite.controller import Controller
from webhook.reunite.facts import Facts, StaleFacts
from webhook.reunite.metrics import reunite_families
from webhook.reunite.reporter import Reporter
from webhook.reunite.round import Round, plan_round
from webhook.reunite.settings import ReuniteSettings
from webhook.reunite.stuck_vms import StuckPlan, StuckVMs
from webhook.reunite.writer import MigrationWriter
from webhook.serving.health import Check, health_handler
from webhook.serving.server import Listener
from webhook.telemetry import log
from webhook.telemetry.metrics import Metrics, background_families
from webhook.terminal import padded, printable

_SYNC_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.1


class NotListed(UserError):
    """Objects that the program needs can't be read."""


def run(settings: ReuniteSettings, *, stdout: TextIO) -> int:
    """Run until SIGTERM or SIGINT, or print one round. Returns the exit code.

    Raises:
        UserError: no cluster can be reached, or its objects can't be read.
    """
    if settings.once:
        return _print_one_round(settings, stdout)
    log.start_log(settings.log_level)
    with asyncio.Runner() as runner:
        return runner.run(_run_until_stopped(settings))


async def _run_until_stopped(settings: ReuniteSettings) -> int:
    background = Background()
    api = await Api.connect(Kubeconfig(file=settings.kubeconfig, context=settings.context))
    events = EventRecorder(api)
    facts = Facts(api, _policy(settings), settings.limits())
    reporter = Reporter(
        events.record_event, facts.vmi_uid, memory_bytes=facts.vmi_memory_bytes, dry_run=settings.dry_run
    )
    writer = None if settings.dry_run else MigrationWriter(api)
    stuck = StuckVMs(api, facts.cluster, settings.stuck_limits()) if settings.restart_stuck else None
    controller = Controller(facts.planner, facts, reporter, writer, stuck=stuck)
    stopping = set_on_signal(background.failed)
    metrics = Metrics(
        CacheMetrics(facts.states, facts.cluster.lookups).families,
        lambda: reunite_families(reporter, dry_run=settings.dry_run),
        lambda: event_families(events.counts),
        lambda: background_families(background.failures),
    )
    health = Listener(health_handler(lambda: _checks(facts), metrics.expose))
    listen = await health.start(settings.health_listen)
    try:
        for name, work in facts.reflectors().items():
            background.start(f"cache {name}", work)
        background.start("events", events.run())
        background.start("rounds", controller.run())
        log_info("started", health_listen=f"http://{listen}", dry_run=settings.dry_run, cluster=api.host)
        await stopping.wait()
    finally:
        await events.stop()
        await background.stop()
        await health.stop(0)
        await api.close()
    log_info("stopped")
    return background.exit_code


def _policy(settings: ReuniteSettings) -> Policy:
    return Policy(longhorn_namespace=settings.longhorn_namespace, opt_in_all=settings.opt_in_all)


def _checks(facts: Facts) -> Sequence[Check]:
    return [Check(each.title, ok=each.fresh, detail=each.detail) for each in facts.states()]


def _print_one_round(settings: ReuniteSettings, stdout: TextIO) -> int:
    logging.getLogger("webhook").addHandler(logging.NullHandler())
    with connect_for_terminal(Kubeconfig(file=settings.kubeconfig, context=settings.context)) as (runner, api, origin):
        found = runner.run(_one_round(api, settings, origin))
    stdout.write(table(*found))
    return 0


async def _one_round(api: Api, settings: ReuniteSettings, origin: str) -> tuple[Round, StuckPlan]:
    facts = Facts(api, _policy(settings), settings.limits())
    tasks = [asyncio.create_task(work) for work in facts.reflectors().values()]
    try:
        until = asyncio.get_running_loop().time() + _SYNC_SECONDS
        while isinstance(situation := await facts.situation(time.time()), StaleFacts):
            if asyncio.get_running_loop().time() > until:
                raise NotListed(*(f"{origin}: {each}; expected to list and watch them" for each in situation.problems))
            await asyncio.sleep(_POLL_SECONDS)
        stuck = StuckPlan()
        if settings.restart_stuck:
            stuck_vms = StuckVMs(api, facts.cluster, settings.stuck_limits())
            stuck = await stuck_vms.plan((vm.row for vm in situation.vms), situation.now)
        return await plan_round(situation, facts.planner().step), stuck
    finally:
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


def table(found: Round, stuck: StuckPlan) -> str:
    """Return a line for each VM that is apart or stuck: what would be done, or the first rule that says no."""
    creates = {(each.vm.row.namespace, each.vm.row.name): each for each in found.plan.creates}
    lines = [("NAMESPACE", "VM", "ACTION", "WHY")]
    for key, action in creates.items():
        row = action.vm.row
        lines.append((*key, "migrate", f"{action.name}: from node {row.node} to node {action.target}"))
    lines += [(each.vm.row.namespace, each.vm.row.name, "restart", each.sentence) for each in stuck.restarts]
    lines += [(*key, "none", str(why)) for key, why in {**found.plan.waiting, **stuck.waiting}.items()]
    if len(lines) == 1:
        return "nothing to do: no VM is apart\n"
    return "".join(
        "   ".join(cells).rstrip() + "\n" for cells in padded([list(map(printable, each)) for each in lines])
    )
