"""`keep` as a process: wires the keeper to a cluster and to its health port, and ends with a signal.

The keeper's loop never ends by itself. Should it do so, the process ends with 1, and its kubelet starts a new one.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import traceback
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path

from certs import log
from certs.cluster import ClusterObjects, ObjectPaths, connect_objects
from certs.connection import Target
from certs.controller import health
from certs.controller.reconciler import Controller
from certs.settings import Address, ControllerSettings


def run(settings: ControllerSettings, *, listen: Address, target: Target) -> int:
    """Keep the certificate until SIGTERM or SIGINT. Returns the exit code: 1 where the keeper ended before.

    Raises:
        UserError: there is no way to an API server, or the address can't be listened on.
    """
    log.start()
    return asyncio.run(_run(settings, listen, target))


async def _run(settings: ControllerSettings, listen: Address, target: Target) -> int:
    paths = ObjectPaths.of(settings)

    def open_cluster() -> AbstractAsyncContextManager[ClusterObjects]:
        return connect_objects(target, paths)

    async with open_cluster():
        pass  # a kubeconfig that can't be used is said now, and not tried again
    controller = Controller(open_cluster, settings.policy, clock=_now, note=log.note)
    listener = await health.listen(listen, controller.status, _now)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    log.note(
        "keeping",
        secret=f"{settings.namespace}/{settings.secret}",
        webhook_configuration=settings.webhook_configuration,
        names=settings.policy.names,
        listen=[f"http://{Address(*each[:2])}" for each in listener.addresses],
    )
    keeps = asyncio.create_task(controller.run())
    stops = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((keeps, stops), return_when=asyncio.FIRST_COMPLETED)
        failed = keeps.done()
        if failed:
            log.note("the keeper ended, so the process ends", logging.ERROR, **_why(keeps))
    finally:
        for task in (keeps, stops):
            task.cancel()
        await asyncio.gather(keeps, stops, return_exceptions=True)
        await listener.cleanup()
    log.note("stopped")
    return 1 if failed else 0


def _why(ended: asyncio.Task[None]) -> dict[str, object]:
    if ended.cancelled():
        return {"because": "it was cancelled"}
    error = ended.exception()
    if error is None:
        return {"because": "it returned"}
    at = [f"{Path(each.filename).name}:{each.lineno}" for each in traceback.extract_tb(error.__traceback__)]
    return {"because": f"{type(error).__name__}: {error}", "at": at}


def _now() -> datetime:
    return datetime.now(UTC)
