"""The only module that imports everything: wires a cluster, the core and the listeners, starts and drains them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook import record
from webhook.core import admit as core
from webhook.core import review
from webhook.core.admit import Answer
from webhook.core.placement import Policy
from webhook.core.reasons import Reason
from webhook.core.review import BadReview
from webhook.core.view import ClusterView, Ref
from webhook.manifests import Manifests
from webhook.record import LOGGER, AdmissionRecord
from webhook.serving import metrics
from webhook.serving.callers import only
from webhook.serving.certificate import ServingCertificate
from webhook.serving.routes import Admit, Check, health_handler, webhook_handler
from webhook.serving.server import Listener
from webhook.serving.tls import MIN_VERSIONS, Files
from webhook.settings import ServeSettings

if TYPE_CHECKING:
    from webhook.kube.store import CacheState

GRACE_SECONDS: Final = 10.0  # an API server waits 10 s by default for an answer that it has asked for


class Cluster(Protocol):
    """Where the facts come from: a live cluster's Store, or Manifests."""

    def view(self) -> ClusterView:
        """The cluster as it is known now."""
        ...

    async def read(self, view: Any, refs: Sequence[Ref], deadline: float) -> ClusterView:
        """The view with these objects read as well; none of them is UNREAD in it. Ends by `deadline`."""
        ...


def serve(settings: ServeSettings) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit code.

    Raises:
        UserError: a manifest, kubeconfig, certificate or address can't be used; nothing was started.
    """
    record.start_logging()
    serving = _serve_manifests if settings.manifests else _serve_live
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serving(settings))
    return 0


async def _serve_manifests(settings: ServeSettings) -> None:
    assert settings.manifests  # noqa: S101 - for the type checker: the caller has asked
    cluster = Manifests.load(settings.manifests, longhorn_namespace=settings.longhorn_namespace)
    await _serve(settings, cluster, lambda: (), {"objects": cluster.size, "ignored": dict(cluster.ignored)})


async def _serve_live(settings: ServeSettings) -> None:
    """Serve from the caches of a live cluster. Calls are answered at once: what no cache has yet is read."""
    from webhook.kube.client import Api, Target  # noqa: PLC0415 - kubernetes-asyncio is 66 MB
    from webhook.kube.store import Store  # noqa: PLC0415 - as above

    api = await Api.connect(Target(kubeconfig=settings.kubeconfig, context=settings.context))
    store = Store(api, longhorn_namespace=settings.longhorn_namespace)
    gc.freeze()  # what was imported stays: without this each full collection walks it, for 50 ms
    caches = asyncio.create_task(store.run())
    try:
        await _serve(settings, store, lambda: [_cache_check(state) for state in store.states()], {"cluster": api.host})
    finally:
        caches.cancel()
        await asyncio.wait([caches])
        await api.close()


def _cache_check(state: CacheState) -> Check:
    """Shown, and no more: without a cache each call reads what it needs, and VMs must start either way."""
    return Check(state.title, ok=state.fresh, detail=state.detail, gates=False)


async def _serve(
    settings: ServeSettings, cluster: Cluster, caches: Callable[[], Sequence[Check]], facts: Mapping[str, Any]
) -> None:
    certificate = ServingCertificate(_tls_files(settings))
    stopping = _stopping()
    checks = health_handler(
        lambda: [_shutdown(stopping), certificate.check(), *caches()], lambda: metrics.of(certificate)
    )
    health = Listener(checks)
    health_listen = await health.start(settings.health_listen)
    keeping = asyncio.create_task(certificate.keep())
    try:
        if certificate.problem is not None:
            _log("not serving yet", health_listen=f"http://{health_listen}")
        await _first(certificate.there, stopping)
        if not stopping.is_set():
            handler = webhook_handler(admitter(cluster, Policy(settings.mode)))
            if settings.client_name is not None:
                handler = only(settings.client_name, handler)
            webhook = Listener(handler, tls=certificate.context)
            known = {"health_listen": f"http://{health_listen}", "certificate_valid_until": certificate.not_after}
            await _take_calls(webhook, settings, stopping, {**known, **facts})
    finally:
        keeping.cancel()
        await health.stop(0)
    _log("stopped")


def _tls_files(settings: ServeSettings) -> Files:
    return Files(
        cert_file=settings.tls_cert_file,
        key_file=settings.tls_private_key_file,
        client_ca_file=settings.client_ca_file,
        server_name=settings.tls_server_name,
        min_version=MIN_VERSIONS[settings.tls_min_version],
    )


async def _take_calls(
    webhook: Listener, settings: ServeSettings, stopping: asyncio.Event, facts: Mapping[str, Any]
) -> None:
    """Listen until a signal comes, then drain and stop."""
    listen = await webhook.start(settings.listen)
    try:
        _log("serving", listen=f"https://{listen}", mode=settings.mode, **facts)
        await stopping.wait()
        webhook.drain()
        _log("draining", drain_seconds=settings.drain_seconds)
        # All of it, even where nobody is connected any more: whether a caller's node still sends new connections here
        # (its kube-proxy may learn of our going seconds after we do) can't be seen from this side.
        await asyncio.sleep(settings.drain_seconds)
        _log("stopping", grace_seconds=GRACE_SECONDS)
    finally:
        await webhook.stop(GRACE_SECONDS)


def _shutdown(stopping: asyncio.Event) -> Check:
    """Readiness goes with the signal, before anything else does: that is what takes new callers elsewhere."""
    return Check("shutdown", ok=False, detail="shutting down") if stopping.is_set() else Check("shutdown", ok=True)


def _stopping() -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT; a second one ends the process on the spot."""
    stopping = asyncio.Event()

    def on_signal() -> None:
        if stopping.is_set():
            os._exit(1)
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


def admitter(cluster: Cluster, policy: Policy, note: Callable[[AdmissionRecord], None] = record.log) -> Admit:
    """The function that answers AdmissionReviews from `cluster`, and hands one record of each to `note`.

    It raises BadReview for what can't be answered. Any other failure of ours is answered too: the pod is admitted
    unchanged, the reason says so, and the log has the error.
    """

    async def admit(body: bytes, deadline: float) -> bytes:
        started = perf_counter_ns()
        reads = 0
        try:
            view = cluster.view()
            answer = core.admit(body, view, policy)
            while not isinstance(answer, Answer):
                reads += len(answer.refs)
                view = await cluster.read(view, answer.refs, deadline)
                answer = core.admit(body, view, policy)
        except BadReview:
            raise
        except Exception as error:  # noqa: BLE001 - the request boundary: whatever goes wrong, the VM starts
            LOGGER.exception("admission failed")
            why = Reason.INTERNAL_ERROR.why(problem=type(error).__name__)
            answer = core.unchanged(review.decode(body), why)
        note(record.of(answer, (perf_counter_ns() - started) // 1000, reads))
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
