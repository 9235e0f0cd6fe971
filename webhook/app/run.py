"""The only module that imports everything: wires a cluster, the core and the listeners, starts and drains them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from webhook.app.background import Background
from webhook.app.handler import Cluster, OnAnswer, entries
from webhook.app.lifecycle import _first, _log, _shutdown, _stopping, _take_calls
from webhook.app.settings import ServeSettings
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core.observe import restart
from webhook.core.observe.vm_status import VMStatus
from webhook.core.opt_in import Mode, Policy
from webhook.files.manifests import Manifests
from webhook.kube.metrics import CacheMetrics, VMMetrics, event_families
from webhook.page.decisions import Decisions
from webhook.page.feed import Feed
from webhook.page.routes import page_handler
from webhook.serving.callers import only
from webhook.serving.certificate import ServingCertificate
from webhook.serving.metrics import of_certificate
from webhook.serving.routes import Check, count_refusals, health_handler, webhook_handler
from webhook.serving.server import Listener
from webhook.serving.sockets import allow_files
from webhook.serving.tls import MIN_VERSIONS, Files
from webhook.telemetry.log import Log
from webhook.telemetry.metrics import Admissions, Metrics, Source, of_background, of_log
from webhook.telemetry.record import LOGGER, AdmissionRecord

if TYPE_CHECKING:
    from webhook.kube.cache.readiness import CacheState
    from webhook.kube.vm_status import VMStatusTracker

POD_SYNC_TIMEOUT_SECONDS: Final = 30.0  # to list every pod; then calls are taken without them


class LiveSources(Struct, frozen=True):
    """What runs in the background, and what there is to tell of a live cluster: nothing, where files describe it."""

    background: Background
    caches: Callable[[], Iterable[Check]] = tuple
    sources: Sequence[Source] = ()
    fleet: VMStatusTracker | None = None
    hear: OnAnswer | None = None


def serve(settings: ServeSettings) -> int:
    """Serve until SIGTERM or SIGINT, or until a background task ends. Returns the exit code.

    Raises:
        UserError: a manifest, kubeconfig, certificate or address can't be used; nothing was started.
    """
    log = Log(settings.log_format, settings.log_level, settings.log_admissions_per_second)
    log.start()
    allow_files()
    serving = _serve_manifests if settings.manifests else _serve_live
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(serving(settings, log))


async def _serve_manifests(settings: ServeSettings, log: Log) -> int:
    assert settings.manifests  # noqa: S101 - for the type checker: the caller has asked
    headroom = settings.headroom if settings.watch_pods == "all" else None
    cluster = Manifests.load(settings.manifests, longhorn_namespace=settings.longhorn_namespace, headroom=headroom)
    background = Background()
    try:
        facts = {"objects": cluster.size, "ignored": dict(cluster.ignored)}
        await _serve(settings, log, cluster, facts, LiveSources(background))
    finally:
        await background.stop()
    return background.exit_code


async def _serve_live(settings: ServeSettings, log: Log) -> int:
    """Serve from the caches of a live cluster. Calls are answered at once: what no cache has yet is read."""
    from webhook.kube.cache.cluster_cache import ClusterCache  # noqa: PLC0415 - kubernetes-asyncio is 66 MB
    from webhook.kube.client.api import Api  # noqa: PLC0415 - as above
    from webhook.kube.events.recorder import EventRecorder  # noqa: PLC0415 - as above
    from webhook.kube.kinds import OWN_NAMESPACE, WatchedPods, resources  # noqa: PLC0415 - as above
    from webhook.kube.vm_status import VMStatusTracker  # noqa: PLC0415 - as above

    api = await Api.connect(Kubeconfig(file=settings.kubeconfig, context=settings.context))
    own_namespace = (api.namespace if api.in_pod else None) or OWN_NAMESPACE
    store = ClusterCache(
        api,
        longhorn_namespace=settings.longhorn_namespace,
        kinds=resources(settings.longhorn_namespace, WatchedPods(settings.watch_pods), own_namespace),
        headroom=settings.headroom,
    )
    gc.freeze()  # what was imported stays: without this each full collection walks it, for 50 ms
    background = Background()
    for cache, work in store.reflectors().items():
        background.start(f"cache {cache}", work)
    sources: list[Source] = [CacheMetrics(store.states, store.lookups).families]
    fleet = None
    if settings.watch_pods != "none":
        fleet = VMStatusTracker(
            store.caches, Policy(Mode(settings.mode), settings.longhorn_namespace), on_stuck=_tell_stuck
        )
        background.start("vms", fleet.run())
        sources.append(VMMetrics(fleet).families)
    now = asyncio.get_running_loop().time
    until = now() + POD_SYNC_TIMEOUT_SECONDS
    events = EventRecorder(api) if settings.events else None
    if events is not None:
        background.start("events", events.run())
    sources.append(lambda: event_families(events.counts if events else {}))
    followed = LiveSources(
        background,
        caches=lambda: [_cache_check(state, new=now() < until) for state in store.states()],
        sources=sources,
        fleet=fleet,
        hear=events.record if events else None,
    )
    try:
        await _serve(settings, log, store, {"cluster": api.host}, followed)
    finally:
        if events is not None:
            await events.stop()
        await background.stop()
        await api.close()
    return background.exit_code


def _tell_stuck(row: VMStatus) -> None:
    """What the guard could not see coming: a foreign pod took the last seat after the pin was given out."""
    fields = {"namespace": row.namespace, "vmi": row.name, "pod": row.pod, "because": row.why.sentence}
    LOGGER.warning(
        "a pinned VM fits nowhere",
        extra={"fields": {**fields, "to_free_it": restart.restart_command(row.name, row.namespace, None)}},
    )


def _cache_check(state: CacheState, *, new: bool) -> Check:
    """Shown, and no more: without a cache each call reads what it needs, and VMs must start either way.

    But a replica that has just started leaves calls to the one before it until it knows the pods: no read makes up for
    them, and without them a pin is a preference.
    """
    waits = new and state.title == "pods" and state.heard_seconds is None
    return Check(state.title, ok=state.fresh, detail=state.detail, gates=waits)


async def _serve(
    settings: ServeSettings, log: Log, cluster: Cluster, facts: Mapping[str, Any], followed: LiveSources
) -> None:
    background = followed.background
    certificate = ServingCertificate(_tls_files(settings))
    stopping, admissions, decisions = _stopping(background.over), Admissions(), Decisions()
    own = (
        admissions.families,
        lambda: of_certificate(certificate),
        lambda: of_log(log),
        lambda: of_background(background.failures),
    )
    metrics = Metrics(*own, *followed.sources)
    checks = health_handler(lambda: [_shutdown(stopping), certificate.check(), *followed.caches()], metrics.expose)
    if settings.page:
        checks = page_handler(Feed(followed.fleet, decisions, replica=platform.node()), checks)
    health = Listener(checks)
    health_listen = await health.start(settings.health_listen)
    background.start("certificate", certificate.keep())
    try:
        if certificate.problem is not None:
            _log("not serving yet", health_listen=f"http://{health_listen}")
        await _first(certificate.there, stopping)
        if not stopping.is_set():
            policy = Policy(Mode(settings.mode), settings.longhorn_namespace)
            handler = webhook_handler(entries(cluster, policy, _record_all(admissions, decisions, log), followed.hear))
            if settings.client_name is not None:
                handler = only(settings.client_name, handler)
            webhook = Listener(count_refusals(handler, admissions.refused), tls=certificate.context)
            known = {"health_listen": f"http://{health_listen}", "certificate_valid_until": certificate.not_after}
            await _take_calls(webhook, settings, stopping, {**known, **facts})
    finally:
        await health.stop(0)
        log.flush()
    _log("stopped")


def _record_all(admissions: Admissions, decisions: Decisions, log: Log) -> Callable[[AdmissionRecord], None]:
    """The one record of a call is counted, kept for the page for a while, and logged."""

    def note(each: AdmissionRecord) -> None:
        admissions.note(each)
        decisions.note(each)
        log.note(each)

    return note


def _tls_files(settings: ServeSettings) -> Files:
    return Files(
        cert_file=settings.tls_cert_file,
        key_file=settings.tls_private_key_file,
        client_ca_file=settings.client_ca_file,
        server_name=settings.tls_server_name,
        min_version=MIN_VERSIONS[settings.tls_min_version],
    )


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Uvloop where it is installed: a TLS connection costs a third less."""
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415 - an extra

        return uvloop.new_event_loop
    return None
