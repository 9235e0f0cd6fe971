"""The only module that imports everything: wires a cluster, the core and the listeners, starts and drains them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import platform
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from webhook import record
from webhook.background import Background
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core import admit as core
from webhook.core import restart, review
from webhook.core.admit import Answer, Entry, Question
from webhook.core.fleet import VirtualMachineRow
from webhook.core.objects import Pod
from webhook.core.placement import Mode, Pin, Policy
from webhook.core.reasons import Reason
from webhook.core.review import BadReview
from webhook.core.view import ClusterView, Ref
from webhook.log import Log, failure
from webhook.manifests import Manifests
from webhook.metrics import (
    Admissions,
    Caches,
    Metrics,
    Source,
    VirtualMachines,
    of_background,
    of_certificate,
    of_events,
    of_log,
)
from webhook.page.decisions import Decisions
from webhook.page.news import News
from webhook.page.routes import page_handler
from webhook.record import LOGGER, AdmissionRecord
from webhook.serve_settings import ServeSettings
from webhook.serving.callers import only
from webhook.serving.certificate import ServingCertificate
from webhook.serving.routes import Admit, Check, health_handler, telling, webhook_handler
from webhook.serving.server import Listener
from webhook.serving.sockets import allow_files
from webhook.serving.tls import MIN_VERSIONS, Files

if TYPE_CHECKING:
    from webhook.kube.fleet import Fleet
    from webhook.kube.store import CacheState

PATIENCE_SECONDS: Final = 30.0  # to list every pod; then calls are taken without them
GRACE_SECONDS: Final = 10.0  # an API server waits 10 s by default for an answer that it has asked for


Hear = Callable[[Answer, Entry], None]
"""What is told of each answer, after it was made; it neither waits nor fails."""


class Followed(Struct, frozen=True):
    """What runs in the background, and what there is to tell of a live cluster: nothing, where files describe it."""

    background: Background
    caches: Callable[[], Iterable[Check]] = tuple
    sources: Sequence[Source] = ()
    fleet: Fleet | None = None
    hear: Hear | None = None


class Cluster(Protocol):
    """Where the facts come from: a live cluster's Store, or Manifests."""

    def view(self) -> ClusterView:
        """The cluster as it is known now."""
        ...

    async def read(self, view: Any, refs: Sequence[Ref], deadline: float) -> ClusterView:
        """The view with these objects read as well; none of them is UNREAD in it. Ends by `deadline`."""
        ...

    def assume(self, pod: Pod, namespace: str, drawn: Pin) -> None:
        """The pod that is being created in `namespace` was just drawn to nodes."""
        ...

    def forget(self, pod: Pod, namespace: str) -> None:
        """The pod that is being created in `namespace` is decided on anew: what was assumed of it is void."""
        ...


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
        await _serve(settings, log, cluster, facts, Followed(background))
    finally:
        await background.stop()
    return background.exit_code


async def _serve_live(settings: ServeSettings, log: Log) -> int:
    """Serve from the caches of a live cluster. Calls are answered at once: what no cache has yet is read."""
    from webhook.kube.client import Api  # noqa: PLC0415 - kubernetes-asyncio is 66 MB
    from webhook.kube.events import Events  # noqa: PLC0415 - as above
    from webhook.kube.fleet import Fleet  # noqa: PLC0415 - as above
    from webhook.kube.kinds import OWN_NAMESPACE, WatchedPods, resources  # noqa: PLC0415 - as above
    from webhook.kube.store import Store  # noqa: PLC0415 - as above

    api = await Api.connect(Kubeconfig(file=settings.kubeconfig, context=settings.context))
    own_namespace = (api.namespace if api.in_pod else None) or OWN_NAMESPACE
    store = Store(
        api,
        longhorn_namespace=settings.longhorn_namespace,
        kinds=resources(settings.longhorn_namespace, WatchedPods(settings.watch_pods), own_namespace),
        headroom=settings.headroom,
    )
    gc.freeze()  # what was imported stays: without this each full collection walks it, for 50 ms
    background = Background()
    for cache, work in store.followers().items():
        background.start(f"cache {cache}", work)
    sources: list[Source] = [Caches(store.states, store.lookups).families]
    fleet = None
    if settings.watch_pods != "none":
        fleet = Fleet(store, Policy(Mode(settings.mode), settings.longhorn_namespace), on_stuck=_tell_stuck)
        background.start("vms", fleet.run())
        sources.append(VirtualMachines(fleet).families)
    now = asyncio.get_running_loop().time
    until = now() + PATIENCE_SECONDS
    events = Events(api) if settings.events else None
    if events is not None:
        background.start("events", events.run())
    sources.append(lambda: of_events(events.counts if events else {}))
    followed = Followed(
        background,
        caches=lambda: [_cache_check(state, new=now() < until) for state in store.states()],
        sources=sources,
        fleet=fleet,
        hear=events.hear if events else None,
    )
    try:
        await _serve(settings, log, store, {"cluster": api.host}, followed)
    finally:
        if events is not None:
            await events.stop()
        await background.stop()
        await api.close()
    return background.exit_code


def _tell_stuck(row: VirtualMachineRow) -> None:
    """What the guard could not see coming: a foreign pod took the last seat after the pin was given out."""
    fields = {"namespace": row.namespace, "vmi": row.name, "pod": row.pod, "because": row.why.sentence}
    LOGGER.warning(
        "a pinned VM fits nowhere",
        extra={"fields": {**fields, "to_free_it": restart.command(row.name, row.namespace, None)}},
    )


def _cache_check(state: CacheState, *, new: bool) -> Check:
    """Shown, and no more: without a cache each call reads what it needs, and VMs must start either way.

    But a replica that has just started leaves calls to the one before it until it knows the pods: no read makes up for
    them, and without them a pin is a preference.
    """
    waits = new and state.title == "pods" and state.heard_seconds is None
    return Check(state.title, ok=state.fresh, detail=state.detail, gates=waits)


async def _serve(
    settings: ServeSettings, log: Log, cluster: Cluster, facts: Mapping[str, Any], followed: Followed
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
        checks = page_handler(News(followed.fleet, decisions, replica=platform.node()), checks)
    health = Listener(checks)
    health_listen = await health.start(settings.health_listen)
    background.start("certificate", certificate.keep())
    try:
        if certificate.problem is not None:
            _log("not serving yet", health_listen=f"http://{health_listen}")
        await _first(certificate.there, stopping)
        if not stopping.is_set():
            policy = Policy(Mode(settings.mode), settings.longhorn_namespace)
            handler = webhook_handler(entries(cluster, policy, _noting(admissions, decisions, log), followed.hear))
            if settings.client_name is not None:
                handler = only(settings.client_name, handler)
            webhook = Listener(telling(handler, admissions.refused), tls=certificate.context)
            known = {"health_listen": f"http://{health_listen}", "certificate_valid_until": certificate.not_after}
            await _take_calls(webhook, settings, stopping, {**known, **facts})
    finally:
        await health.stop(0)
        log.flush()
    _log("stopped")


def _noting(admissions: Admissions, decisions: Decisions, log: Log) -> Callable[[AdmissionRecord], None]:
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
        _log("stopping", grace_seconds=GRACE_SECONDS)
    finally:
        await webhook.stop(GRACE_SECONDS)


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


def entries(
    cluster: Cluster, policy: Policy, note: Callable[[AdmissionRecord], None], hear: Hear | None = None
) -> Mapping[str, Admit]:
    """What answers the calls of each entry of the webhook configuration, by its path."""
    return {entry.path: admitter(cluster, policy, note, entry, hear) for entry in Entry}


def admitter(
    cluster: Cluster,
    policy: Policy,
    note: Callable[[AdmissionRecord], None],
    entry: Entry = Entry.VIRT_LAUNCHER,
    hear: Hear | None = None,
) -> Admit:
    """The function that answers the AdmissionReviews of `entry` from `cluster`, and hands a record of each to `note`.

    It raises BadReview for what can't be answered. Any other failure of ours is answered too: the pod is admitted
    unchanged, the reason says so, and the log has the error.
    """

    async def decided(question: Question, spent: _Spent, deadline: float) -> Answer:
        """The answer, once everything that it takes was read."""
        counts = entry is Entry.VIRT_LAUNCHER and not question.request.dry_run
        if counts:  # the API server may ask again about the same pod: the first answer is void
            cluster.forget(question.pod, question.namespace)
        view = cluster.view()
        answer = core.answer(question, view, policy)
        while not isinstance(answer, Answer):
            spent.reads += len(answer.refs)
            asked = perf_counter_ns()
            view = await cluster.read(view, answer.refs, deadline)
            spent.read_ns += perf_counter_ns() - asked
            answer = core.answer(question, view, policy)
        if counts and isinstance(answer.decision, Pin):  # at once, before anybody else is answered
            cluster.assume(question.before, question.namespace, answer.decision)
        return answer

    async def admit(body: bytes, deadline: float) -> bytes:
        started, spent = perf_counter_ns(), _Spent()
        try:
            question = core.read(body, entry)
            answer = question if isinstance(question, Answer) else await decided(question, spent, deadline)
        except BadReview:
            raise
        except Exception as error:  # noqa: BLE001 - the request boundary: whatever goes wrong, the VM starts
            why = Reason.INTERNAL_ERROR.why(problem=type(error).__name__)
            answer = core.unchanged(review.decode(body), why)
            LOGGER.error("admission failed", extra={"fields": {"uid": answer.request.uid, **failure(error)}})
        us = (perf_counter_ns() - started) // 1000
        note(record.of(answer, us, spent.reads, entry, read_us=spent.read_ns // 1000))
        if hear is not None:
            hear(answer, entry)
        return answer.body

    return admit


class _Spent(Struct):
    """What one call cost: objects that were read for it, and the time until they were."""

    reads: int = 0
    read_ns: int = 0


def _log(message: str, **fields: object) -> None:
    LOGGER.info(message, extra={"fields": fields})


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Uvloop where it is installed: a TLS connection costs a third less."""
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415 - an extra

        return uvloop.new_event_loop
    return None
