"""Reflector: sends the requests of a ListWatch to the API server, until cancelled."""

from __future__ import annotations

import asyncio
from typing import Final

from webhook.component_base.client.api import Api
from webhook.component_base.client.transport import ApiError
from webhook.kube.informer.connection import SETTLE_SECONDS, Request, Wait
from webhook.kube.informer.list_watch import ListWatch
from webhook.telemetry.record import LOGGER

_UNAUTHORIZED: Final = 401
_AFTER_A_BUG_SECONDS: Final = 5.0


class Reflector:
    """The driver of one ListWatch."""

    def __init__(self, api: Api, machine: ListWatch) -> None:
        self._api = api
        self._machine = machine
        self._path = machine.resource.collection
        self._logged_problem = machine.problem

    async def run(self) -> None:
        """List and watch until cancelled. After a fault of the program it logs the fault, and goes on after 5 s."""
        try:
            while True:
                await self._guarded_step()
        finally:
            self._machine.ended(loop_time(), "no task updates it any more")

    async def _guarded_step(self) -> None:
        try:
            await self._step()
        except Exception:  # noqa: BLE001 - the task supervisor: a cache that no task updates would be wrong
            LOGGER.exception("a cache failed", extra={"fields": {"cache": self._machine.resource.title}})
            self._machine.ended(loop_time(), "a fault of the webhook; please report this")
            await asyncio.sleep(_AFTER_A_BUG_SECONDS)

    async def _step(self) -> None:
        step = self._machine.next(loop_time())
        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
            return
        error, silent = "", False
        try:
            await self._exchange(step)
        except ApiError as problem:
            error, silent = str(problem), problem.silent
        self._machine.ended(loop_time(), error, silent=silent)
        self._log_change()

    async def _exchange(self, request: Request) -> None:
        machine = self._machine
        async with self._api.stream(self._path, request.query, silence_seconds=request.silence_seconds) as stream:
            machine.opened(stream.status, stream.retry_after, loop_time())
            if stream.status == _UNAUTHORIZED:
                await self._api.renew()
            settle = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._settle)
            try:
                async for piece in stream.pieces():
                    wanted = machine.feed(piece, loop_time())
                    self._log_change()
                    if not wanted:
                        return
            finally:
                settle.cancel()

    def _settle(self) -> None:
        self._machine.settle(loop_time())
        self._log_change()

    def _log_change(self) -> None:
        """Log each change of the problem once: a new problem, and its end."""
        machine, fields = self._machine, {"cache": self._machine.resource.title}
        if machine.problem == self._logged_problem:
            return
        self._logged_problem = machine.problem
        if machine.problem:
            LOGGER.warning("cache not up to date", extra={"fields": {**fields, "problem": machine.problem}})
        else:
            LOGGER.info("cache synced", extra={"fields": {**fields, "objects": len(machine.objects)}})


def loop_time() -> float:
    """Return the time of the event loop in seconds: that of all caches and deadlines."""
    return asyncio.get_running_loop().time()
