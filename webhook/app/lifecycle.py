"""The life of the webhook's port: listen, drain after a signal, stop within a grace period."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from typing import Any, Final

from webhook.app.settings import ServeSettings
from webhook.component_base.health import Check
from webhook.component_base.server.listener import Listener
from webhook.telemetry.record import LOGGER

SHUTDOWN_GRACE_SECONDS: Final = 10.0  # an API server's default timeout for a call


async def serve_calls(
    webhook: Listener,
    settings: ServeSettings,
    stopping: asyncio.Event,
    interrupted: asyncio.Event,
    log_fields: Mapping[str, Any],
) -> None:
    """Listen until `stopping` is set. Then drain for `drain_seconds`, and stop within SHUTDOWN_GRACE_SECONDS.

    If `interrupted` is set too, a user at a terminal waits: with files for a cluster, no API server calls the webhook.
    """
    listen = await webhook.start(settings.listen)
    try:
        log_info("serving", listen=f"https://{listen}", mode=settings.mode, **log_fields)
        await stopping.wait()
        webhook.begin_drain()
        drain_seconds = 0 if settings.manifests and interrupted.is_set() else settings.drain_seconds
        log_info("draining", drain_seconds=drain_seconds)
        # The whole time, even if no client is connected. The kube-proxy of a caller's node can learn seconds later
        # that this replica stops, and sends new connections until then. The webhook can't see that.
        await asyncio.sleep(drain_seconds)
        log_info("stopping", grace_seconds=SHUTDOWN_GRACE_SECONDS)
    finally:
        await webhook.stop(SHUTDOWN_GRACE_SECONDS)


def shutdown_check(stopping: asyncio.Event) -> Check:
    """Return the check that makes /readyz fail at the signal, so that new callers go to another replica."""
    return Check("shutdown", ok=False, detail="shutting down") if stopping.is_set() else Check("shutdown", ok=True)


def set_on_signal(stopping: asyncio.Event) -> asyncio.Event:
    """Set the event at the first SIGTERM or SIGINT, and exit at once at the second.

    Return another event, which SIGINT (Ctrl-C) sets.
    """
    signalled, interrupted = False, asyncio.Event()

    def on_signal(number: int) -> None:
        nonlocal signalled
        if signalled:
            os._exit(1)
        signalled = True
        if number == signal.SIGINT:
            interrupted.set()
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    return interrupted


async def wait_for_first(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


def log_info(message: str, **fields: object) -> None:
    """Log a line with fields at level info."""
    LOGGER.info(message, extra={"fields": fields})
