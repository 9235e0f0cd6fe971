"""`keep` as a process: connects the controller to a cluster and to its health port, until a signal.

The controller's loop does not end by itself. If it does, the process exits with 1, and the kubelet starts a new one.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from functools import partial

from certs import log
from certs.cluster import ObjectPaths, connect_objects
from certs.controller import health
from certs.controller.reconciler import Clock, Controller
from certs.settings import ControllerSettings
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.component_base.log_line import raised_at
from webhook.component_base.server.listener import Listener
from webhook.component_base.server.sockets import allow_files


def run(settings: ControllerSettings, kubeconfig: Kubeconfig) -> int:
    """Run the controller until SIGTERM or SIGINT. Return the exit code: 1 if the controller ended before that.

    Raises:
        UserError: the kubeconfig, the service account or the address can't be used.
    """
    log.start()
    allow_files()
    return asyncio.run(_run(settings, kubeconfig))


async def _run(settings: ControllerSettings, kubeconfig: Kubeconfig) -> int:
    open_cluster = partial(connect_objects, kubeconfig, ObjectPaths.of(settings))
    async with open_cluster():
        pass  # a kubeconfig that can't be used ends the process now
    clock = Clock()
    controller = Controller(open_cluster, settings.policy, clock, log.note)
    listener = Listener(health.handler(controller.status, clock))
    listen = await listener.start(settings.listen)
    log.note(
        "keeping",
        secret=f"{settings.namespace}/{settings.secret}",
        authority_secret=f"{settings.namespace}/{settings.authority_secret}",
        webhook_configuration=settings.webhook_configuration,
        names=settings.policy.names,
        listen=f"http://{listen}",
    )
    try:
        exit_code = await _until_signal(controller)
    finally:
        await listener.stop(0)
    log.note("stopped")
    return exit_code


async def _until_signal(controller: Controller) -> int:
    """Run the controller until SIGTERM or SIGINT. Return the exit code: 1 if the controller ended before that."""
    stopping = asyncio.Event()
    running = asyncio.create_task(controller.run())
    running.add_done_callback(lambda _: stopping.set())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await stopping.wait()
    if not running.done():
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return 0
    error = asyncio.CancelledError() if running.cancelled() else running.exception()
    fields = {"because": f"{type(error).__name__}: {error}", "at": raised_at(error)} if error else {}
    log.note("the controller ended, so the process ends", logging.ERROR, **fields)
    return 1
