"""The state is read from damaged objects too, and a patch is for the version that was read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes import certs_cluster
from support.fakes.certs_cluster import NOW, MemoryCluster, configuration, secret

from certs import plan, state
from certs.pki import NO_PAIR, Pair

PAIR = certs_cluster.pair()


def test_a_secret_is_read_whole() -> None:
    """Its version and its pair. One that does not exist has neither."""
    assert state.read_secret(secret(PAIR)) == state.Secret(version="1", pair=PAIR)
    assert state.read_secret(None) == state.Secret(version=None, pair=NO_PAIR)


@pytest.mark.parametrize("data", [None, {}, {"tls.crt": "", "tls.key": ""}, {"tls.crt": "%%%"}])
def test_a_secret_without_content_is_empty(data: Any) -> None:
    """As after an apply of a manifest without data, or a kubectl create from an empty file."""
    assert state.read_secret({"metadata": {"resourceVersion": "7"}, "data": data}).pair == NO_PAIR


def test_a_write_leaves_what_is_not_ours() -> None:
    """Other keys, and annotations."""
    held = secret(certs_cluster.pair(), other=b"e")
    held["metadata"]["annotations"] = {"other": "f"}
    shown = MemoryCluster(held, configuration(b""))
    shown.put("served", "1", PAIR)
    written = shown.secrets["served"]
    assert state.read_secret(written).pair == PAIR
    assert set(written["data"]) == {*state.KEYS, "other"}
    assert written["metadata"]["annotations"] == {"other": "f"}


@given(bundle=st.binary(max_size=200), content=st.binary(max_size=100))
def test_any_garbage_has_a_next_step(bundle: bytes, content: bytes) -> None:
    """No content of the objects stops the controller."""
    garbage = secret(Pair(content, content, content))
    for authority in (garbage, secret(certs_cluster.made().pair)):
        seen = MemoryCluster(garbage, configuration(bundle), authority).state()
        step = plan.next_step(seen, plan.RotationHistory(), certs_cluster.POLICY, NOW)
        assert isinstance(step, plan.NewAuthority | plan.Publish)
