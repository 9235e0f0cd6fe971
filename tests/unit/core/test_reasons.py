from __future__ import annotations

import string

import pytest

from webhook.core.reasons import CHAIN_ORDER, SENTENCE_MAX_CHARS, Reason, shortened

NAMES = {
    "allocatable",
    "asked",
    "at",
    "because",
    "before",
    "besides",
    "claim",
    "condition",
    "count",
    "decision",
    "driver",
    "facts",
    "key",
    "kind",
    "label",
    "limit",
    "message",
    "modes",
    "most",
    "namespace",
    "node",
    "nodes",
    "on",
    "operation",
    "other",
    "owner",
    "phase",
    "plugin",
    "pod",
    "pods",
    "problem",
    "replicas",
    "resource",
    "scheduler",
    "since",
    "staleness",
    "state",
    "steering",
    "subresource",
    "taint",
    "terms",
    "used",
    "unasked",
    "value",
    "vm",
    "volume",
    "waiting",
    "what",
    "which",
    "who",
    "word",
}


def names_of(reason: Reason) -> set[str]:
    """Return the placeholders of a reason's template."""
    return {name for _, name, _, _ in string.Formatter().parse(reason.template) if name is not None}


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.code)
def test_a_reason_makes_a_sentence(reason: Reason) -> None:
    """The template has known names only. The sentence has no braces and fits after `code: `."""
    assert names_of(reason) <= NAMES
    why = reason.why(**{name: f"<{name}>" for name in names_of(reason)})
    assert not set("{}") & set(why.sentence)
    assert all(f"<{name}>" in why.sentence for name in names_of(reason))
    assert str(why) == f"{reason.code}: {why.sentence}"
    assert why.sentence == why.sentence.strip().rstrip(".")


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.code)
def test_no_sentence_is_longer_than_its_bound(reason: Reason) -> None:
    """Whatever stands in an object. A shortened sentence ends with three dots."""
    names = names_of(reason)
    sentence = reason.why(**dict.fromkeys(names, "x" * 690_000)).sentence
    assert len(sentence) == SENTENCE_MAX_CHARS if names else len(sentence) < SENTENCE_MAX_CHARS
    assert sentence.endswith("...") is bool(names)


def test_a_sentence_up_to_the_bound_stays_as_it_is() -> None:
    """One character more is too much."""
    longest = "x" * SENTENCE_MAX_CHARS
    assert shortened(longest) == longest
    assert shortened(f"{longest}y") == f"{longest[:-3]}..."


def test_codes_and_sentences_are_unique() -> None:
    """No two reasons share a code or a template."""
    assert len({reason.code for reason in Reason}) == len(Reason)
    assert len({reason.template for reason in Reason}) == len(Reason)


def test_the_chain_ranks_every_reason_in_its_order() -> None:
    """The further a claim leads, and the stronger its evidence, the higher the rank of its reason."""
    assert set(CHAIN_ORDER) == set(Reason)
    chain = [
        Reason.EPHEMERAL_CLAIM,
        Reason.CLAIM_NOT_FOUND,
        Reason.CLAIM_NOT_BOUND,
        Reason.VOLUME_NOT_FOUND,
        Reason.CLAIM_NOT_READ_WRITE_MANY,
        Reason.VOLUME_NOT_LONGHORN,
        Reason.VOLUME_IS_BLOCK,
        Reason.VOLUME_STRICT_LOCAL,
        Reason.SHARE_MANAGER_NOT_FOUND,
        Reason.SHARE_MANAGER_NO_NODE,
        Reason.SHARE_MANAGER_UNSCHEDULED,
        Reason.SHARE_MANAGER_OWNER,
        Reason.SHARE_MANAGER_POD,
    ]
    assert sorted(chain, key=CHAIN_ORDER.__getitem__) == chain
