"""`serve` as a process: opens the sources, runs the listeners until a stop, and returns the exit code."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from webhook.app.background import Background
from webhook.app.listeners import run_listeners
from webhook.app.manifest_sources import manifest_sources
from webhook.app.settings import ServeSettings
from webhook.app.sources import Sources
from webhook.component_base.server.sockets import allow_files
from webhook.telemetry import log


def serve(settings: ServeSettings) -> int:
    """Serve until SIGTERM or SIGINT, or until a background task ends. Return the exit code.

    Raises:
        UserError: a manifest, kubeconfig, certificate or address can't be used; nothing was started.
    """
    log.start_log(settings.log_level)
    allow_files()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(run_until_stopped(settings))


async def run_until_stopped(settings: ServeSettings) -> int:
    """Serve from the sources that the settings name. Return the exit code, and raise, as `serve` does."""
    background = Background()
    async with _sources(settings, background) as sources:
        await run_listeners(settings, sources, background)
    return background.exit_code


def _sources(settings: ServeSettings, background: Background) -> contextlib.AbstractAsyncContextManager[Sources]:
    if settings.manifests:
        return manifest_sources(settings, background)
    from webhook.app.live_sources import live_sources  # noqa: PLC0415 - imports kubernetes-asyncio, which is 66 MB

    return live_sources(settings, background)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's factory if uvloop is installed: with it a TLS connection costs a third less."""
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415 - an extra

        return uvloop.new_event_loop
    return None
