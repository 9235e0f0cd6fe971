"""The two listeners of a process: the health port at once, and the webhook's port when there is a certificate."""

from __future__ import annotations

import platform
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from webhook.app.background import Background
from webhook.app.handler import admit_functions
from webhook.app.lifecycle import log_info, serve_calls, set_on_signal, shutdown_check, wait_for_first
from webhook.app.settings import ServeSettings
from webhook.app.sources import Sources, policy_of
from webhook.component_base.health import Check, health_application
from webhook.component_base.metrics import expose, new_registry
from webhook.component_base.once_a_minute import OnceAMinute
from webhook.component_base.server.listener import Listener
from webhook.core.reasons import Reason
from webhook.page.decisions import Decisions
from webhook.page.feed import About, Feed, published_documents
from webhook.page.routes import page_routes
from webhook.serving.certificate import ServingCertificate
from webhook.serving.metrics import certificate_families
from webhook.serving.routes import webhook_application
from webhook.serving.tls import MIN_VERSIONS, TLSFiles
from webhook.telemetry import log
from webhook.telemetry.metrics import Admissions, process_families
from webhook.telemetry.record import LOGGER, AdmissionRecord


async def run_listeners(settings: ServeSettings, sources: Sources, background: Background) -> None:
    """Answer health requests and calls until a signal, or until a background task ends; then drain and stop.

    Raises:
        UserError: a certificate or address can't be used.
    """
    certificate = ServingCertificate(_tls_files(settings))
    registry = new_registry(
        lambda: process_families(background.failures), lambda: certificate_families(certificate), *sources.metrics
    )
    stopping, admissions, decisions = background.failed, Admissions(registry), Decisions()
    interrupted = set_on_signal(stopping)

    def checks() -> list[Check]:
        return [shutdown_check(stopping), certificate.check(), *sources.checks()]

    health_app = health_application(checks, partial(expose, registry))
    if settings.page:
        health_app.add_routes(page_routes(Feed(sources.vm_statuses, decisions, _about(settings, sources))))
    health = Listener(health_app)
    health_listen = f"http://{await health.start(settings.health_listen)}"
    background.start("certificate", certificate.watch_files())
    try:
        if certificate.problem is not None:
            log_info("not serving yet", health_listen=health_listen)
        await wait_for_first(certificate.available, stopping)
        if not stopping.is_set():
            on_record, on_answer = record_all(admissions, decisions), sources.on_answer
            calls = admit_functions(sources.facts, policy_of(settings), on_record, on_answer)
            app = webhook_application(calls, client_name=settings.client_name, refused=admissions.refused)
            webhook = Listener(app, tls=certificate.context)
            fields = {"health_listen": health_listen, "certificate_valid_until": certificate.not_after}
            await serve_calls(webhook, settings, stopping, interrupted, {**fields, **sources.log_fields})
    finally:
        await health.stop(0)
    log_info("stopped")


def _about(settings: ServeSettings, sources: Sources) -> About:
    return About(
        replica=platform.node(),
        cluster=sources.cluster,
        manifests=str(settings.manifests or ""),
        reunite_messages=sources.reunite_messages,
        documents=published_documents(),
    )


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
        log.write(record)
        if record.reason == unread and lines.is_due(unread):
            fields = {"entry": record.entry, "because": record.because, "so_far": lines.so_far[unread]}
            LOGGER.warning("the owner of a pod was not read", extra={"fields": fields})

    return record_one


def _tls_files(settings: ServeSettings) -> TLSFiles:
    return TLSFiles(
        cert_file=settings.tls_cert_file,
        key_file=settings.tls_private_key_file,
        client_ca_file=settings.client_ca_file,
        server_name=settings.tls_server_name,
        min_version=MIN_VERSIONS[settings.tls_min_version],
    )
