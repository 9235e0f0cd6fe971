"""The state is read from damaged objects too, and a patch is for the version that was read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes import certs_cluster
from support.fakes.certs_cluster import NOW, configuration, secret

from certs.rotation import plan, state
from certs.rotation.state import Mark, Role
from certs.x509.pki import NO_PAIR

PAIR, NEXT = certs_cluster.pair(), certs_cluster.pair()


def test_a_secret_is_read_whole() -> None:
    """Both pairs, the previous authorities, and the time."""
    read = state.read_secret(secret(PAIR, NEXT, previous=b"old", placed_at=NOW))
    assert (read.version, read.current, read.next, read.previous, read.placed_at) == ("1", PAIR, NEXT, b"old", NOW)


@pytest.mark.parametrize(
    "annotation", ["", "yesterday", "2026-11-21T12:00:00", "12"], ids=["none", "a word", "no zone", "a number"]
)
def test_a_time_that_is_none_is_unknown(annotation: str) -> None:
    """A time without a time zone is ignored."""
    raw = secret(PAIR)
    raw["metadata"]["annotations"] = {state.PLACED_AT: annotation}
    assert state.read_secret(raw).placed_at is None


@pytest.mark.parametrize("data", [None, {}, {"tls.crt": "", "tls.key": ""}, {"tls.crt": "%%%"}])
def test_a_secret_without_content_is_empty(data: Any) -> None:
    """As after an apply of a manifest without data, or a kubectl create from an empty file."""
    assert state.read_secret({"metadata": {"resourceVersion": "7"}, "data": data}).current == NO_PAIR


@pytest.mark.parametrize(
    "marks",
    ["", "garbage", "[]", '{"a":1}', '{"a":{"role":"king","since":"2026-11-21T12:00:00Z"}}', '{"a":{"role":"needed"}}'],
)
def test_marks_that_can_not_be_read_count_as_none(marks: str) -> None:
    """They are written again."""
    assert state.read_configuration(configuration(b"", marks=marks)).marks == {}


def test_marks_are_read_as_they_are_written() -> None:
    """Exactly to the microsecond."""
    marks = {"a": Mark(Role.NEEDED, NOW), "b": Mark(Role.LEAVING, datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC))}
    read = state.read_configuration(configuration(b""))
    text = state.configuration_patch(read, b"", marks)["metadata"]["annotations"][state.MARKS]
    assert state.read_configuration(configuration(b"", marks=text)).marks == marks


@given(bundle=st.binary(max_size=200), current=st.binary(max_size=100), marks=st.text(max_size=50))
def test_any_garbage_has_a_next_step(bundle: bytes, current: bytes, marks: str) -> None:
    """No content of the two objects stops the controller."""
    raw = secret(certs_cluster.pki.Pair(current, current, current))
    seen = state.ClusterState(state.read_secret(raw), state.read_configuration(configuration(bundle, marks=marks)))
    assert isinstance(plan.next_step(seen, certs_cluster.POLICY, NOW), plan.Publish | plan.Issue)
