"""`keep` as a process: connects the controller to a cluster, to its health port and its log, until a signal.

The controller's loop does not end by itself. If it does, the process exits with 1, and the kubelet starts a new one.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from functools import partial
from typing import Final

from certs import health
from certs.cluster import ObjectPaths, connect_objects
from certs.controller import Clock, Controller
from certs.settings import ControllerSettings
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.component_base.log_line import failure, write_to_stderr
from webhook.component_base.server.listener import Listener
from webhook.component_base.server.sockets import allow_files

LOGGER: Final = logging.getLogger("certs")


def run(settings: ControllerSettings, kubeconfig: Kubeconfig) -> int:
    """Run the controller until SIGTERM or SIGINT. Return the exit code: 1 if the controller ended before that.

    Raises:
        UserError: the kubeconfig, the service account or the address can't be used.
    """
    write_to_stderr(logging.INFO)
    allow_files()
    return asyncio.run(_run(settings, kubeconfig))


async def _run(settings: ControllerSettings, kubeconfig: Kubeconfig) -> int:
    open_cluster = partial(connect_objects, kubeconfig, ObjectPaths.of(settings))
    async with open_cluster():
        pass  # a kubeconfig that can't be used ends the process now
    clock = Clock()
    controller = Controller(open_cluster, settings.policy, clock, note)
    listener = Listener(health.application(controller.status, clock))
    listen = await listener.start(settings.listen)
    note(
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
    note("stopped")
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
    note("the controller ended, so the process ends", logging.ERROR, **(failure(error) if error else {}))
    return 1


def note(message: str, level: int = logging.INFO, **fields: object) -> None:
    """Log one line: a constant message, and its fields, which are names and reasons and never a key."""
    LOGGER.log(level, message, extra={"fields": fields})
