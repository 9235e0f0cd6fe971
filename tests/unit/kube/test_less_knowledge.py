"""Less knowledge never gives a stronger answer: each kind of the caches, out of date, not listed yet, or refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import pytest
from support.fakes.live import PATHS, RESOURCES, listed, path_of
from support.objects import corpus
from support.objects.corpus import Case
from support.objects.embedded import embedded, policy

from webhook.core.admit import Answer, Entry, admit
from webhook.core.decision import Leave, Pin
from webhook.core.view import KINDS_OF_VMS, Kind, NoObject, Ref
from webhook.kube.cache.caches import Caches
from webhook.kube.cache.view import CallView, LiveRead
from webhook.kube.wire import Decoders

NOW: Final = 1000.0
OLD: Final = NOW - 11.0  # a cache counts as up to date for 10 s
pytestmark = pytest.mark.slow
CASES: Final = [case for case in corpus.load() if case.creates_pod and case.pod["metadata"].get("namespace") is None]
OF_USERS: Final = ("vm-facts.yaml", "shared-volumes.yaml")
SOME: Final = [case for number, case in enumerate(CASES) if case.source in OF_USERS or number % 16 == 0]
ROUNDS_MAX: Final = 12
_KINDS: Final = {path: kind for kind, path in PATHS.items()}
_REFUSED: Final = LiveRead(NoObject.UNAVAILABLE, problem="403 Forbidden: for a test")
KNOWING: Final = {
    "stale, and reads succeed": (OLD, True),
    "stale, and reads fail": (OLD, False),
    "not listed, and reads succeed": (None, True),
    "not listed, and reads fail": (None, False),
    "may not be listed or read": ("403", False),
    "is not installed": ("404", False),
}
"""Since when the cache of one kind is not watched, or the answer to its list; and whether its objects can be read."""


class Strength(NamedTuple):
    """How strong an answer is: whether nodes are required, and whether the pod is limited to a list."""

    required: bool
    limited: bool

    def exceeds(self, other: Strength) -> bool:
        """Whether this answer excludes nodes that the other does not. A requirement excludes more than a list."""
        return (self.required and not other.required) or (self.limited and not (other.limited or other.required))


def strength(answer: Answer) -> Strength:
    """Return the strength of an answer."""
    decision = answer.decision
    limited = not isinstance(decision, Leave) and bool(decision.shortlist)
    return Strength(isinstance(decision, Pin) and bool(decision.required), limited)


def kinds_of(described: dict[str, Any]) -> Iterator[Kind]:
    """The caches that have an object: a share-manager pod is in two."""
    yield _KINDS[path_of(described)]
    if described["kind"] == "Pod":
        yield Kind.VIRT_LAUNCHER_POD


@cache
def full(case: Case) -> tuple[Caches, Mapping[Kind, list[dict[str, Any]]]]:
    """The caches of a row's cluster, all up to date, and its objects by kind."""
    caches = Caches(RESOURCES.values(), in_pod=False)
    objects: dict[Kind, list[dict[str, Any]]] = {}
    for each in case.objects:
        for kind in dict.fromkeys(kinds_of(each)):
            if RESOURCES[kind].namespace in {"", each["metadata"].get("namespace", "")}:
                objects.setdefault(kind, []).append(each)
    for kind, store in caches.items():
        listed(store, *unfinished(objects.get(Kind(kind), ())), at=NOW)
    return caches, objects


def unfinished(objects: Any) -> list[dict[str, Any]]:
    """The objects without pods that are over, which the caches do not list."""
    over = ("Succeeded", "Failed")
    return [each for each in objects if each["kind"] != "Pod" or each.get("status", {}).get("phase") not in over]


def lacking(case: Case, kind: Kind, how: str) -> Caches:
    """The caches of a row's cluster, of which that of `kind` knows less."""
    whole, objects = full(case)
    caches = Caches(RESOURCES.values(), in_pod=False)
    since, _ = KNOWING[how]
    less = caches[kind]
    caches.update((other, store) for other, store in whole.items() if other is not kind)
    if isinstance(since, float):
        listed(less, *unfinished(objects.get(kind, ())), at=since)
    elif since:
        less.next(NOW)
        less.opened(int(since), None, NOW)
        less.feed(b"404 page not found\n" if since == "404" else b"", NOW)
        less.ended(NOW)
    return caches


def read_one(case: Case, ref: Ref) -> LiveRead:
    """What a GET, or the list of a node's pods, comes to."""
    found = embedded(case).get(ref)
    if isinstance(found, NoObject):
        return LiveRead(NoObject.NOT_FOUND)
    if ref.kind is Kind.VIRT_LAUNCHERS_ON_NODE:
        return LiveRead(found)
    resource = RESOURCES[ref.kind]
    for each in full(case)[1].get(ref.kind, ()):
        namespace = "" if not resource.namespaced else each["metadata"].get("namespace", "")
        if (namespace, each["metadata"]["name"]) == (ref.key.namespace if resource.namespaced else "", ref.name):
            wire: Any = Decoders(resource.wire).object(json.dumps(each).encode())
            return LiveRead(resource.transform(wire))
    return LiveRead(NoObject.NOT_FOUND)


def answer(case: Case, caches: Caches, unread: Kind | None = None) -> Answer:
    """The answer with these caches; objects of the kind `unread` can't be read."""
    entry = next(entry for entry in Entry if entry.title == case.entry)
    body, reads = json.dumps(case.review).encode(), dict[Ref, LiveRead]()
    for _ in range(ROUNDS_MAX):
        view = CallView(caches, NOW, reads)
        found = admit(body, view, policy(case), entry)
        if not view.missing:
            return found
        reads |= {ref: _REFUSED if ref.kind is unread else read_one(case, ref) for ref in view.missing}
    raise AssertionError("core asks and asks")


UNKNOWN_KINDS: Final = [
    (kind, how)
    for kind, resource in RESOURCES.items()
    for how in KNOWING
    if resource.watched and (how != "is not installed" or kind in KINDS_OF_VMS)
]
"""A kind of another product that is not installed is a fact, and no lack of knowledge."""


@pytest.mark.parametrize(("kind", "how"), UNKNOWN_KINDS)
def test_a_kind_that_is_not_known_makes_no_answer_stronger(kind: Kind, how: str) -> None:
    """Over rows of the corpus."""
    _, readable = KNOWING[how]
    for case in SOME:
        known = strength(answer(case, full(case)[0]))
        less = answer(case, lacking(case, kind, how), None if readable else kind)
        assert not strength(less).exceeds(known), (case.name, str(less.decision.why))


@pytest.mark.parametrize("kind", [kind for kind, resource in RESOURCES.items() if not resource.watched])
def test_a_kind_that_is_only_read_makes_no_answer_stronger_where_it_can_not_be_read(kind: Kind) -> None:
    """The same for Longhorn's VolumeAttachments."""
    for case in SOME:
        caches = full(case)[0]
        assert not strength(answer(case, caches, kind)).exceeds(strength(answer(case, caches))), case.name


@pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)
def test_full_knowledge_gives_the_answer_of_the_row(case: Case) -> None:
    """Without this test caches that know nothing would pass: they are no stronger."""
    full.cache_clear()  # a pod is queued for a minute at most
    assert answer(case, full(case)[0]).audit_annotations["decision"] == case.expect.decision
