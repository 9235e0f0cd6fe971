"""Core is asked again until its view lacks nothing."""

from __future__ import annotations

import pytest
from support.fakes.views import MISSING, ViewWithGaps, cluster

from webhook.core import refs
from webhook.explain.sources.cluster_reader import ClusterReader

_NODE = refs.node("node-a")


def test_a_core_that_needs_objects_without_end_is_an_error() -> None:
    """A core that always needs more objects would be a fault of the program, and not an endless loop."""
    reader = ClusterReader(cluster(), "nowhere", "longhorn-system")
    lacking = ViewWithGaps(cluster(), {_NODE: MISSING})
    lacking.read_missing = lambda: None  # type: ignore[attr-defined]  # it reads nothing
    reader.view = lacking  # type: ignore[assignment]  # a ClusterView is enough
    with pytest.raises(AssertionError, match="core still needs objects after 16 rounds of reads"):
        reader.ask(lambda view: view.get(_NODE))
