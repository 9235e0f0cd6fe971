"""`keep` as a process: wires the keeper to a cluster and to its health port, and ends with a signal.

The keeper's loop never ends by itself. Should it do so, the process ends with 1, and its kubelet starts a new one.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime

from certs import log
from certs.controller import health
from certs.controller.objects import Cluster, Places, connect
from certs.controller.reconciler import Controller
from certs.settings import Keeping
from webhook.component_base.address import Address
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.component_base.log_line import raised_at


def run(keeping: Keeping, *, listen: Address, kubeconfig: Kubeconfig) -> int:
    """Keep the certificate until SIGTERM or SIGINT. Returns the exit code: 1 where the keeper ended before.

    Raises:
        UserError: there is no way to an API server, or the address can't be listened on.
    """
    log.start()
    return asyncio.run(_run(keeping, listen, kubeconfig))


async def _run(keeping: Keeping, listen: Address, kubeconfig: Kubeconfig) -> int:
    places = Places.of(keeping)

    def open_cluster() -> AbstractAsyncContextManager[Cluster]:
        return connect(kubeconfig, places)

    async with open_cluster():
        pass  # a kubeconfig that can't be used is said now, and not tried again
    keeper = Controller(open_cluster, keeping.policy, clock=_now, note=log.note)
    listener = await health.listen(listen, keeper.status, _now)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    log.note(
        "keeping",
        secret=f"{keeping.namespace}/{keeping.secret}",
        webhook_configuration=keeping.webhook_configuration,
        names=keeping.policy.names,
        listen=[f"http://{Address(*each[:2])}" for each in listener.addresses],
    )
    keeps = asyncio.create_task(keeper.run())
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
    return {"because": f"{type(error).__name__}: {error}", "at": raised_at(error)}


def _now() -> datetime:
    return datetime.now(UTC)
