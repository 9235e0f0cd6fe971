"""The record in a pod's annotation has a bound: the webhook writes none that is longer, and reads none."""

from __future__ import annotations

import json

import pytest

from webhook.core.api.affinity import MAX_TERMS
from webhook.core.decision import NODES_SHOWN
from webhook.core.patch.applied_patch import (
    RECORD_MAX_CHARS,
    AppliedPatch,
    from_annotation,
    to_annotation,
)
from webhook.core.reasons import SENTENCE_MAX_CHARS

_NAMES = tuple(f"{each:03}" + "n" * 250 for each in range(MAX_TERMS))


def test_the_longest_record_is_read() -> None:
    """With names of 253 characters, and a text of which JSON escapes each character."""
    longest = AppliedPatch(
        nodes=_NAMES,
        narrowed=MAX_TERMS,
        preferred=tuple((name, 100, 10) for name in _NAMES),
        near_nodes=tuple((name[:63], 100, 1) for name in _NAMES),
        no_eviction=True,
        owner="u" * 36,
        by="namespace",
        decided="required",
        on=_NAMES[:NODES_SHOWN],
        more=10_000,
        reason="r" * 40,
        because=chr(34) * SENTENCE_MAX_CHARS,
    )
    written = to_annotation(longest)
    assert len(written) <= RECORD_MAX_CHARS
    assert from_annotation(written) == longest


@pytest.mark.parametrize("record", [AppliedPatch(nodes=("n",) * 65), AppliedPatch(preferred=(("n", 1, 1),) * 65)])
def test_a_record_of_more_nodes_is_none(record: AppliedPatch) -> None:
    """Each of them would be compared with each term of the pod."""
    assert from_annotation(to_annotation(record)) == AppliedPatch()


def test_a_longer_text_is_no_record() -> None:
    """It is not decoded: a pod's annotations may have 256 KiB."""
    written = json.dumps({"decided": "required", "owner": "u" * RECORD_MAX_CHARS})
    assert from_annotation(written) == AppliedPatch()
