"""`keep` as a process: wires the keeper to a cluster and to its health port, and ends with a signal."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime

from certs import health, log
from certs.cluster import Cluster, Places, connect
from certs.connection import Target
from certs.keep import Keeper
from certs.settings import Address, Keeping


def run(keeping: Keeping, *, listen: Address, target: Target) -> int:
    """Keep the certificate until SIGTERM or SIGINT. Returns the exit code.

    Raises:
        UserError: there is no way to an API server, or the address can't be listened on.
    """
    log.start()
    asyncio.run(_run(keeping, listen, target))
    return 0


async def _run(keeping: Keeping, listen: Address, target: Target) -> None:
    places = Places.of(keeping)

    def open_cluster() -> AbstractAsyncContextManager[Cluster]:
        return connect(target, places)

    async with open_cluster():
        pass  # a kubeconfig that can't be used is said now, and not tried again
    keeper = Keeper(open_cluster, keeping.policy, clock=_now, note=log.note)
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
        done, _ = await asyncio.wait((keeps, stops), return_when=asyncio.FIRST_COMPLETED)
        if keeps in done:
            keeps.result()  # what nobody has foreseen ends the process, with its traceback
    finally:
        for task in (keeps, stops):
            task.cancel()
        await asyncio.gather(keeps, stops, return_exceptions=True)
        await listener.cleanup()
    log.note("stopped")


def _now() -> datetime:
    return datetime.now(UTC)
