"""Rows of the corpus where some kinds are in no cache: the answer after reading, and what was read for it."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final

import pytest
from support.fakes.views import Asked, ViewWithGaps
from support.objects import corpus
from support.objects.corpus import Case
from support.objects.embedded import embedded

from webhook.core.admit import Answer, Entry, admit
from webhook.core.opt_in import Mode, Policy
from webhook.core.view import ClusterView, Kind, NoObject, Ref
from webhook.objects.cluster import Cluster

CASES: Final = corpus.load()
ROUNDS_MAX: Final = 9  # a share-manager pod whose VM is drained, with nothing cached: the way of both volumes
KINDS: Final = tuple(kind for kind in Kind if kind is not Kind.VIRT_LAUNCHER_POD)  # whose pods are listed, never read


class Unread(ViewWithGaps):
    """A cluster of which no object of these kinds is cached; `read` are those that were read."""

    def __init__(self, whole: Cluster, kinds: Collection[Kind], read: Collection[Ref]) -> None:
        super().__init__(whole, {})
        self._kinds = kinds
        self._read = read

    def without_reads(self) -> ViewWithGaps:
        """Implement ClusterView: a short list finds all nodes in the cache, as with a complete one."""
        return ViewWithGaps(self._whole, {})

    def read_error(self, ref: Ref) -> str:
        """Implement ClusterView."""
        return f"{ref.name} was not read"

    def _gap(self, ref: Ref) -> NoObject | None:
        if ref.kind not in self._kinds or ref in self._read:
            return None
        self.missing[ref] = None
        return NoObject.UNAVAILABLE


def ask(case: Case, view: ClusterView) -> Answer:
    """Return the answer of core."""
    entry = next(entry for entry in Entry if entry.title == case.entry)
    return admit(json.dumps(case.review).encode(), view, Policy(Mode(case.mode)), entry)


@pytest.mark.parametrize("case", CASES[::3], ids=lambda case: case.name)
def test_a_row_is_decided_by_what_its_decision_needs(case: Case) -> None:
    """The answer is that of a complete cache. Nothing is read that a complete cache would not be asked for."""
    whole = embedded(case)
    at_once = Asked(whole, {})
    expected = ask(case, at_once).body
    for kinds in (KINDS, KINDS[::2], KINDS[1::2], KINDS[::3]):
        read: set[Ref] = set()
        for _ in range(ROUNDS_MAX):
            view = Unread(whole, kinds, read)
            answer = ask(case, view)
            assert not view.missing.keys() & read
            read |= view.missing.keys()
            if not view.missing:
                break
        assert not view.missing
        assert answer.body == expected
        assert read <= at_once.asked
