"""Core is asked again until its view lacks nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.fakes.views import MISSING, Patchy, cluster

from webhook.core import refs
from webhook.core.view import Ref
from webhook.explain.sources import cluster_reader
from webhook.explain.sources.manifests_reader import ManifestsReader
from webhook.objects.manifests import Manifests

_NODE = refs.node("node-a")


class _Lacking(ManifestsReader):
    """A cluster that always lacks a node."""

    def __init__(self, manifests: Manifests, origin: str) -> None:
        super().__init__(manifests, origin)
        self.view = Patchy(manifests, {_NODE: MISSING})  # type: ignore[assignment]  # a ClusterView is enough


def test_manifests_leave_nothing_unread() -> None:
    """Core needs no further objects of manifests; if it did, an error would name the fault of the program."""
    reader = _Lacking(cluster(), "nowhere")
    with pytest.raises(AssertionError, match="core asked to read Node node-a, although all manifests were read"):
        cluster_reader.answer_when_read(reader, lambda view: view.get(_NODE))


class _Endless(_Lacking):
    """A cluster that reads nothing."""

    def read(self, refs: Sequence[Ref]) -> None:
        """Read nothing."""


def test_a_core_that_needs_objects_without_end_is_an_error() -> None:
    """A core that always needs more objects would be a fault of the program, and not an endless loop."""
    with pytest.raises(AssertionError, match="core still needs objects after 16 rounds of reads"):
        cluster_reader.answer_when_read(_Endless(cluster(), "nowhere"), lambda view: view.get(_NODE))
