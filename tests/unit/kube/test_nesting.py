"""JSON without what is nested too deeply to be decoded."""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.kube.nesting import LEVELS_MAX, shallow

MOST_SECONDS = 2.0
DEEP = b"[" * 9_000 + b"]" * 9_000
TEXT = st.text(st.sampled_from('[]{}"\\,:a\n\u00e9'), max_size=6)
JSON = st.recursive(
    TEXT | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)


def cut(value: Any, level: int = 1) -> Any:
    """The value with None in place of each object and list on the last level."""
    if not isinstance(value, list | dict):
        return value
    if level == LEVELS_MAX:
        return None
    if isinstance(value, list):
        return [cut(each, level + 1) for each in value]
    return {key: cut(each, level + 1) for key, each in value.items()}


@given(JSON, JSON, st.integers(0, LEVELS_MAX + 3))
def test_only_what_is_nested_too_deeply_is_left_out(inner: Any, beside: Any, levels: int) -> None:
    """Whatever texts have in them, and whatever stands beside and within."""
    value = inner
    for level in range(levels):
        value = [beside, value, beside] if level % 2 else {"a": beside, "b": value, "c": beside}
    assert json.loads(shallow(json.dumps(value, ensure_ascii=False).encode())) == cut(value)


def test_a_large_object_is_cut_in_half_a_second() -> None:
    """As many brackets as an object can have: it takes 0.5 s, and a slow machine has four times as long."""
    body, began = b"[" + b"[]," * 500_000 + DEEP + b"]", process_time()
    assert len(shallow(body)) < len(body) - len(DEEP) + 3 * LEVELS_MAX
    assert process_time() - began < MOST_SECONDS


@pytest.mark.parametrize("body", [b"", b"x", b"]" * 99, b'"' + b'\\"' * 99_999, b"[" * 99_999, b'["a"]'])
def test_a_beginning_is_left_of_bytes_that_are_not_json(body: bytes) -> None:
    """No bytes make it raise, or take long."""
    assert body.startswith(shallow(body))
