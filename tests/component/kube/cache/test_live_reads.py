"""Live reads that fail, and caches that may be out of date."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from support.drivers import serving
from support.fakes.api_server import ApiServer, Cluster, Handler, refusing, saying, until
from support.fakes.http_line import Asked, Line
from support.fakes.live import PATHS, answered, cluster_of, gets, listed, now, path_of, ref
from support.objects import builders
from support.objects.owners import of_launchers

from webhook.core import refs
from webhook.core.decision import Pin
from webhook.core.view import KINDS_OF_VMS, Kind, NoObject, Ref
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.cache.view import CallView

CLAIM = ref(Kind.PERSISTENT_VOLUME_CLAIM, "disk", "vms")
CLAIM_PATH = "/api/v1/namespaces/vms/persistentvolumeclaims/disk"
POD = builders.virt_launcher_pod(claims=["disk"])
SOON = 5.0


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes and some claims; `disk` is served on node-a."""
    return cluster_of(*serving.cluster())


async def reset(_: Asked, line: Line) -> None:
    """Break the connection before the first byte."""
    line.reset()


async def cut(_: Asked, line: Line) -> None:
    """Break it in the middle of the body."""
    await line.head()
    await line.say(b"ff\r\n{")
    line.reset()


async def endless(_: Asked, line: Line) -> None:
    """More than any object has."""
    await line.answer(200, b" " * (16 * 1024 * 1024 + 1))


async def silent(_: Asked, line: Line) -> None:
    """The server never answers."""
    await line.silence()


TROUBLES: dict[str, tuple[Handler, str]] = {
    "403": (refusing(403, "Forbidden", "nodes is forbidden"), "403 Forbidden: nodes is forbidden"),
    "404 of a proxy": (saying(404, b"<html>no such page</html>"), "404: <html>no such page</html>"),
    "HTML with status 200": (saying(200, b"<html>"), "an object that can't be read: JSON is malformed"),
    "not UTF-8": (
        saying(200, b'{"metadata":{"name":"\xff"}}'),
        "an object that can't be read: 'utf-8' codec can't decode byte 0xff",
    ),
    "nested without end": (
        saying(200, b'{"metadata":{},"x":' + b"[" * 100_000),
        "an object that can't be read: Input data was truncated",
    ),
    "a field of a wrong type": (
        saying(200, b'{"metadata":{"name":"disk"},"spec":{"volumeName":5}}'),
        "an object that can't be read: Expected `str | null`, got `int`",
    ),
    "a reset": (reset, ""),
    "cut in the middle": (cut, ""),
    "without end": (endless, "an answer of more than 16777216 bytes"),
    "silence": (silent, "no answer in 0."),
}


@pytest.mark.parametrize(("handler", "problem"), TROUBLES.values(), ids=TROUBLES)
async def test_what_can_not_be_read_is_unavailable_in_words(
    handler: Handler, problem: str, store: ClusterCache, server: ApiServer
) -> None:
    """The problem has the server's message on one line, and nothing is raised."""
    server.handler = handler
    view = await store.read(store.view(), [CLAIM], now() + (0.1 if handler is silent else SOON))
    assert view.get(CLAIM) is NoObject.UNAVAILABLE
    told = view.read_error(CLAIM)
    assert told.startswith(problem)
    assert told
    assert told.isprintable()
    lookups = store.lookups[CLAIM.kind]
    assert (lookups.failed, lookups.late) == ((0, 1) if handler is silent else (1, 0))
    server.handler = saying(500)
    server.reset()
    await until(lambda: not store.under_way)


# Stale.


def disk_claim() -> dict[str, Any]:
    """Claim `disk` as a cache once received it: bound to another volume."""
    return builders.persistent_volume_claim("disk", volume_name="pv-old")


def volume_of(view: CallView) -> str | None:
    """The volume of claim `disk`."""
    claim = view.get(CLAIM)
    assert not isinstance(claim, NoObject), claim
    assert claim.spec
    return claim.spec.volume_name


async def test_a_stale_cache_is_confirmed_by_a_read(store: ClusterCache, server: ApiServer) -> None:
    """The answer is the server's, and there is no staleness."""
    listed(store.caches[Kind.PERSISTENT_VOLUME_CLAIM], disk_claim(), at=now() - 60)
    view = await store.read(store.view(), [CLAIM], now() + SOON)
    assert volume_of(view) == "pv-disk"
    assert view.staleness() is None
    assert gets(server) == [CLAIM_PATH]


async def test_a_read_that_fails_leaves_the_cached_object_and_a_staleness(
    store: ClusterCache, server: ApiServer
) -> None:
    """The object is good for a preference. The staleness names the object, its age, and why the read failed."""
    listed(store.caches[Kind.PERSISTENT_VOLUME_CLAIM], disk_claim(), at=now() - 60)
    server.handler = refusing(503, "ServiceUnavailable")
    view = await store.read(store.view(), [CLAIM, ref(Kind.NODE, "node-a")], now() + SOON)
    assert volume_of(view) == "pv-old"
    staleness = view.staleness()
    assert staleness
    assert re.sub(r"\d+ s", "60 s", staleness) == (
        "PersistentVolumeClaim disk was last confirmed 60 s ago (503 ServiceUnavailable: for a test)"
    )
    assert view.get(refs.node("node-a")) is NoObject.UNAVAILABLE


async def test_a_staleness_makes_a_requirement_a_preference(store: ClusterCache, server: ApiServer) -> None:
    """The webhook prefers the node that last served the disk, and does not require it."""
    at = now() - 60
    parts: dict[str, list[dict[str, Any]]] = {path: [] for path in PATHS.values()}
    for each in (*serving.cluster(), *of_launchers(())):
        parts[path_of(each)].append(each)
    for cache in store.caches.values():
        counted = {Kind.PERSISTENT_VOLUME, Kind.VIRT_LAUNCHER_POD, Kind.NODE, Kind.CSI_NODE, *KINDS_OF_VMS}
        listed(cache, *parts[cache.resource.collection], at=now() if cache.resource.kind in counted else at)
    server.handler = refusing(503, "ServiceUnavailable")
    answer, view = await answered(store, POD)
    assert isinstance(answer.decision, Pin)
    assert answer.decision.required == ()
    assert answer.decision.nodes == ("node-a",)
    assert answer.decision.why.reason.code == "EvidenceNotConfirmed"
    assert view.staleness() in str(answer.decision.why)


async def test_objects_over_the_limit_are_stale_if_a_cache_has_them(store: ClusterCache) -> None:
    """Over the limit of reads the object of a stale cache counts with a staleness, as after any read that fails."""
    listed(store.caches[Kind.PERSISTENT_VOLUME_CLAIM], disk_claim(), at=now() - 60)
    refs: Sequence[Ref] = [*(ref(Kind.NODE, f"n{i}") for i in range(2)), CLAIM]
    view = await store.read(store.view(), refs, now() + SOON, 2)
    assert volume_of(view) == "pv-old"
    staleness = view.staleness()
    assert staleness
    assert staleness.endswith("s ago (this pod needs more objects to be read than one admission may read)")


# What can't be.

_LONG = "a" * 254
IN_ANY_NAMESPACE = (Kind.PERSISTENT_VOLUME_CLAIM, Kind.VIRT_LAUNCHER_POD, Kind.VIRT_LAUNCHERS_ON_NODE)
IMPOSSIBLE = ["", ".", "..", "a/b", "../x", "A", "a_b", "a b", "a\n", "é", "%2e%2e", "a?watch=true", _LONG]


@pytest.mark.parametrize("name", IMPOSSIBLE, ids=ascii)
async def test_a_name_that_no_object_can_have_never_reaches_the_wire(
    name: str, store: ClusterCache, server: ApiServer
) -> None:
    """An object of any kind with this name is absent. In a path the name could lead to another resource."""
    cluster_wide = set(Kind) - set(IN_ANY_NAMESPACE)
    refs: list[Ref] = [ref(kind, name) for kind in cluster_wide]
    refs += [ref(kind, name, "vms") for kind in IN_ANY_NAMESPACE]
    refs += [ref(kind, "disk", name) for kind in IN_ANY_NAMESPACE]
    view = await store.read(store.view(), refs, now() + SOON)
    assert [view.reads[each].value for each in refs] == [NoObject.NOT_FOUND] * len(refs)
    assert server.asked == []
