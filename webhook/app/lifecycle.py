"""Start, drain and stop."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from typing import Any, Final

from webhook.app.settings import ServeSettings
from webhook.serving.routes import Check
from webhook.serving.server import Listener
from webhook.telemetry.record import LOGGER

SHUTDOWN_GRACE_SECONDS: Final = 10.0  # an API server waits 10 s by default for an answer that it has asked for


async def _take_calls(
    webhook: Listener,
    settings: ServeSettings,
    stopping: asyncio.Event,
    facts: Mapping[str, Any],
) -> None:
    """Listen until a signal comes, or a background task ends; then drain and stop."""
    listen = await webhook.start(settings.listen)
    try:
        _log("serving", listen=f"https://{listen}", mode=settings.mode, **facts)
        await stopping.wait()
        webhook.drain()
        _log("draining", drain_seconds=settings.drain_seconds)
        # All of it, even where nobody is connected any more: whether a caller's node still sends new connections here
        # (its kube-proxy may learn of our going seconds after we do) can't be seen from this side.
        await asyncio.sleep(settings.drain_seconds)
        _log("stopping", grace_seconds=SHUTDOWN_GRACE_SECONDS)
    finally:
        await webhook.stop(SHUTDOWN_GRACE_SECONDS)


def _shutdown(stopping: asyncio.Event) -> Check:
    """Readiness goes with the signal, before anything else does: that is what takes new callers elsewhere."""
    return Check("shutdown", ok=False, detail="shutting down") if stopping.is_set() else Check("shutdown", ok=True)


def _stopping(stopping: asyncio.Event) -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT, too; a second one ends the process on the spot."""
    signalled = False

    def on_signal() -> None:
        nonlocal signalled
        if signalled:
            os._exit(1)
        signalled = True
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    return stopping


async def _first(*events: asyncio.Event) -> None:
    """Wait until one of these is set."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


def _log(message: str, **fields: object) -> None:
    LOGGER.info(message, extra={"fields": fields})
