"""`serve` as a process: opens the cluster, answers on two listeners until a stop, and returns the exit code.

The health port answers at once, and the webhook's port when there is a certificate.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from webhook.app.handler import ServedCluster, admit_functions, described_cluster
from webhook.app.settings import ServeSettings
from webhook.component_base.health import Check, expose, health_application, new_registry
from webhook.component_base.lifecycle import Background, set_on_signal, wait_for_first
from webhook.component_base.log_line import OnceAMinute
from webhook.component_base.server.listener import Listener, allow_files
from webhook.core.reasons import Reason
from webhook.invocation import Invocation
from webhook.page.feed import About, Decisions, Feed, published_documents
from webhook.page.routes import page_routes
from webhook.serving.certificate import ServingCertificate, certificate_families
from webhook.serving.routes import webhook_application
from webhook.serving.tls import MIN_VERSIONS, TLSFiles
from webhook.telemetry.metrics import Admissions, process_families
from webhook.telemetry.record import LOGGER, AdmissionRecord, write, written_log

SHUTDOWN_GRACE_SECONDS: Final = 10.0  # an API server's default timeout for a call


def serve(settings: ServeSettings) -> int:
    """Serve until SIGTERM or SIGINT, or until a background task ends. Return the exit code.

    Raises:
        UserError: a manifest, kubeconfig, certificate or address can't be used; nothing was started.
    """
    allow_files()
    with written_log(settings.log_level), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(run_until_stopped(settings))


async def run_until_stopped(settings: ServeSettings) -> int:
    """Serve the cluster that the settings name. Return the exit code, and raise, as `serve` does."""
    background = Background()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(background.stop)
        if settings.manifests:
            cluster = described_cluster(settings.manifests, settings.longhorn_namespace, settings.policy)
        else:
            from webhook.app.live_cluster import live_cluster  # noqa: PLC0415 - kubernetes-asyncio needs 66 MB

            cluster = await stack.enter_async_context(live_cluster(settings, background))
        await _run_listeners(settings, cluster, background)
    return background.exit_code


async def _run_listeners(settings: ServeSettings, cluster: ServedCluster, background: Background) -> None:
    """Answer health requests and calls until a signal, or until a background task ends; then drain and stop.

    Raises:
        UserError: a certificate or address can't be used.
    """
    files = TLSFiles(
        cert_file=settings.tls_cert_file,
        key_file=settings.tls_private_key_file,
        client_ca_file=settings.client_ca_file,
        server_name=settings.tls_server_name,
        min_version=MIN_VERSIONS[settings.tls_min_version],
    )
    certificate = ServingCertificate(files)
    registry = new_registry(
        lambda: process_families(background.failures), lambda: certificate_families(certificate), *cluster.metrics
    )
    stopping, admissions, decisions = background.failed, Admissions(registry), Decisions()
    interrupted = set_on_signal(stopping)

    def checks() -> list[Check]:
        # After the signal no replica is ready, so that new callers go to another one.
        shutdown = Check("shutdown", ok=not stopping.is_set(), detail="shutting down" if stopping.is_set() else "")
        return [shutdown, certificate.check(), *cluster.checks()]

    health_app = health_application(checks, partial(expose, registry))
    if settings.page:
        about = About(
            replica=platform.node(),
            cluster=cluster.origin,
            commands=Invocation.of(settings),
            files=bool(settings.manifests),
            reunite_messages=cluster.reunite_messages,
            documents=published_documents(),
            has_vm=cluster.has_vm,
        )
        health_app.add_routes(page_routes(Feed(cluster.vm_statuses, decisions, about)))
    health = Listener(health_app)
    health_listen = f"http://{await health.start(settings.health_listen)}"
    background.start("certificate", certificate.watch_files())
    try:
        if certificate.problem is not None:
            _log("not serving yet", health_listen=health_listen)
        await wait_for_first(certificate.available, stopping)
        if not stopping.is_set():
            on_record = record_all(admissions, decisions)
            calls = admit_functions(cluster.facts, settings.policy, on_record, cluster.on_answer)
            app = webhook_application(calls, client_name=settings.client_name, refused=admissions.refused)
            webhook = Listener(app, tls=lambda: certificate.context, refused=certificate.handshakes.note)
            fields = {"health_listen": health_listen, "certificate_valid_until": certificate.not_after}
            await _serve_calls(webhook, settings, stopping, interrupted, {**fields, **cluster.log_fields})
    finally:
        await health.stop(0)
    _log("stopped")


async def _serve_calls(
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
        _log("serving", listen=f"https://{listen}", mode=settings.mode, **log_fields)
        await stopping.wait()
        webhook.begin_drain()
        drain_seconds = 0 if settings.manifests and interrupted.is_set() else settings.drain_seconds
        _log("draining", drain_seconds=drain_seconds)
        # The whole time, even if no client is connected. The kube-proxy of a caller's node can learn seconds later
        # that this replica stops, and sends new connections until then. The webhook can't see that.
        await asyncio.sleep(drain_seconds)
        _log("stopping", grace_seconds=SHUTDOWN_GRACE_SECONDS)
    finally:
        await webhook.stop(SHUTDOWN_GRACE_SECONDS)


def record_all(
    admissions: Admissions, decisions: Decisions, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Callable[[AdmissionRecord], None]:
    """Return a function that counts each record, keeps it for the page, and logs it.

    The record of a pod whose owner can't be read is at level debug. One warning a minute says that there are such pods.
    """
    unread, lines = Reason.OWNER_LOOKUP_FAILED.code, OnceAMinute(now)

    def record_one(record: AdmissionRecord) -> None:
        admissions.count(record)
        decisions.note(record)
        write(record)
        if record.reason == unread and lines.is_due(unread):
            fields = {"entry": record.entry, "because": record.because, "so_far": lines.so_far[unread]}
            LOGGER.warning("the owner of a pod was not read", extra={"fields": fields})

    return record_one


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's factory if uvloop is installed: with it a TLS connection costs a third less."""
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415 - an extra

        return uvloop.new_event_loop
    return None


def _log(message: str, **fields: object) -> None:
    """Log a line with fields at level info."""
    LOGGER.info(message, extra={"fields": fields})
