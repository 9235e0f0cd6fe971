"""The only module that imports everything: wires a cluster, the core and the listeners, starts and drains them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from time import perf_counter_ns
from typing import Final

from webhook import record
from webhook.core import admit as core
from webhook.core import review
from webhook.core.admit import Answer
from webhook.core.placement import Policy
from webhook.core.reasons import Reason
from webhook.core.review import BadReview
from webhook.core.view import ClusterView
from webhook.manifests import Manifests
from webhook.record import LOGGER, AdmissionRecord
from webhook.serving.routes import Admit, health_handler, webhook_handler
from webhook.serving.server import Listener
from webhook.serving.tls import server_context
from webhook.settings import ServeSettings

DRAIN_SECONDS: Final = 10.0  # an API server waits 10 s by default for an answer that it has asked for


def serve(settings: ServeSettings) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit code.

    Raises:
        UserError: a manifest, the certificate or an address can't be used; nothing was started.
    """
    cluster = Manifests.load(settings.manifests, longhorn_namespace=settings.longhorn_namespace)
    record.start_logging()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings, cluster))
    return 0


async def _serve(settings: ServeSettings, cluster: Manifests) -> None:
    stopping = asyncio.Event()
    handler = webhook_handler(admitter(cluster, Policy(settings.mode)))
    webhook = Listener(handler, tls=server_context(settings.tls_cert_file, settings.tls_private_key_file))
    health = Listener(health_handler(lambda: not stopping.is_set()))
    listen = await webhook.start(settings.listen)
    try:
        health_listen = await health.start(settings.health_listen)
        _log(
            "serving",
            listen=f"https://{listen}",
            health_listen=f"http://{health_listen}",
            mode=settings.mode,
            objects=cluster.size,
            ignored=dict(cluster.ignored),
        )
        await _signalled(stopping)
        _log("stopping", grace_seconds=DRAIN_SECONDS)
    finally:
        await webhook.stop(DRAIN_SECONDS)
        await health.stop(0)
    _log("stopped")


async def _signalled(stopping: asyncio.Event) -> None:
    """Wait for the first SIGTERM or SIGINT; a second one ends the process on the spot."""

    def on_signal() -> None:
        if stopping.is_set():
            os._exit(1)
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    await stopping.wait()


def admitter(view: ClusterView, policy: Policy, note: Callable[[AdmissionRecord], None] = record.log) -> Admit:
    """The function that answers AdmissionReviews from `view`, and hands one record of each to `note`.

    It raises BadReview for what can't be answered. Any other failure of ours is answered too: the pod is admitted
    unchanged, the reason says so, and the log has the error.
    """

    async def admit(body: bytes) -> bytes:
        started = perf_counter_ns()
        try:
            answer = core.admit(body, view, policy)
            if not isinstance(answer, Answer):
                raise TypeError(f"an embedded cluster holds everything, and core needs {answer.refs}")  # noqa: TRY301
        except BadReview:
            raise
        except Exception as error:  # noqa: BLE001 - the request boundary: whatever goes wrong, the VM starts
            LOGGER.exception("admission failed")
            why = Reason.INTERNAL_ERROR.why(problem=type(error).__name__)
            answer = core.unchanged(review.decode(body), why)
        note(record.of(answer, (perf_counter_ns() - started) // 1000))
        return answer.body

    return admit


def _log(message: str, **fields: object) -> None:
    LOGGER.info(message, extra={"fields": fields})


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Uvloop where it is installed: a TLS connection costs a third less."""
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415 - an extra

        return uvloop.new_event_loop
    return None
