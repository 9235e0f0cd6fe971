from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from support.models import scheduler_model

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.meta import LabelSelector
from webhook.core.scheduler.matching.label_selector import (
    NOTHING,
    Scope,
    Selector,
    Term,
    conjunction,
    parse_selector,
    parse_terms,
)

Object = dict[str, Any]
LABELS = {"app": "db", "tier": ""}


def expression(key: str, operator: str | None, *values: str) -> Object:
    """A selector of one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def selector(described: Object | None) -> Selector:
    """A selector that parses."""
    parsed = parse_selector(convert(described, LabelSelector | None))
    assert parsed is not None
    return parsed


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        pytest.param(None, False, id="absent matches nothing"),
        pytest.param({}, True, id="empty matches everything"),
        pytest.param({"matchLabels": None, "matchExpressions": None}, True, id="null parts are empty"),
        pytest.param({"matchLabels": {"app": "db"}}, True, id="a label"),
        pytest.param({"matchLabels": {"app": "web"}}, False, id="a label of another value"),
        pytest.param({"matchLabels": {"zone": ""}}, False, id="an absent label is not the empty one"),
        pytest.param({"matchLabels": {"tier": ""}}, True, id="an empty value"),
        pytest.param({"matchLabels": {"app": "db", "tier": "x"}}, False, id="labels are ANDed"),
        pytest.param(expression("app", "In", "web", "db"), True, id="In"),
        pytest.param(expression("zone", "In", "a"), False, id="In of an absent label"),
        pytest.param(expression("app", "NotIn", "db"), False, id="NotIn"),
        pytest.param(expression("zone", "NotIn", "a"), True, id="NotIn of an absent label"),
        pytest.param(expression("tier", "Exists"), True, id="Exists"),
        pytest.param(expression("zone", "Exists"), False, id="Exists, and it does not"),
        pytest.param(expression("zone", "DoesNotExist"), True, id="DoesNotExist"),
        pytest.param(expression("tier", "DoesNotExist"), False, id="DoesNotExist, and it does"),
        pytest.param({"matchLabels": {"app": "db"}, **expression("tier", "DoesNotExist")}, False, id="both are ANDed"),
    ],
)
def test_it_matches_as_upstream(described: Object | None, *, expected: bool) -> None:
    """LabelSelectorAsSelector: absent is nothing, empty is everything, the rest is ANDed."""
    assert selector(described).matches(LABELS) is expected
    assert scheduler_model.matches(described, LABELS) is expected


@pytest.mark.parametrize(
    "described",
    [
        pytest.param(expression("app", "In"), id="In of no values"),
        pytest.param(expression("app", "NotIn"), id="NotIn of no values"),
        pytest.param(expression("app", "Exists", "x"), id="Exists with a value"),
        pytest.param(expression("app", "DoesNotExist", "x"), id="DoesNotExist with a value"),
        pytest.param(expression("app", "Gt", "1"), id="an operator of node selectors"),
        pytest.param(expression("app", None), id="no operator"),
        pytest.param({"matchLabels": {"app": "db"}, **expression("app", "Bogus")}, id="one part of two"),
    ],
)
def test_what_does_not_parse(described: Object) -> None:
    """The whole selector is unreadable, for what is wrong with one part; so are the terms of a pod that has it."""
    assert parse_selector(convert(described, LabelSelector)) is None
    terms = [{"topologyKey": "zone"}, {"topologyKey": "zone", "labelSelector": described}]
    assert parse_terms(convert(terms, list[PodAffinityTerm]), "vms") is None
    terms[1] = {"topologyKey": "zone", "namespaceSelector": described}
    assert parse_terms(convert(terms, list[PodAffinityTerm]), "vms") is None


_VALUES = st.sampled_from(["", "a", "b"])
_EXPRESSIONS = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from("xyz"),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(_VALUES, min_size=1, max_size=3),
        }
    ),
    st.fixed_dictionaries({"key": st.sampled_from("xyz"), "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
)
_LABELS = st.dictionaries(st.sampled_from("xyz"), _VALUES)
_SELECTORS = st.none() | st.fixed_dictionaries(
    {}, optional={"matchLabels": _LABELS, "matchExpressions": st.lists(_EXPRESSIONS, max_size=3)}
)


@given(described=_SELECTORS, other=_SELECTORS, labels=_LABELS)
def test_it_agrees_with_the_model(described: Object | None, other: Object | None, labels: dict[str, str]) -> None:
    """Any selector matches what its JSON says, and a conjunction what both say."""
    matches = scheduler_model.matches(described, labels)
    assert selector(described).matches(labels) is matches
    both = conjunction([selector(described), selector(other)])
    assert both.matches(labels) is (matches and scheduler_model.matches(other, labels))


def test_equal_however_written() -> None:
    """Order, repetition and matchLabels or In make no difference: equal terms are kept once."""
    one = selector({"matchLabels": {"b": "1"}, **expression("a", "In", "y", "x", "y")})
    other = selector(
        {"matchExpressions": [*expression("a", "In", "x", "y")["matchExpressions"], *_one("b", "1"), *_one("b", "1")]}
    )
    assert (one, hash(one)) == (other, hash(other))


def _one(key: str, value: str) -> list[Object]:
    found: list[Object] = expression(key, "In", value)["matchExpressions"]
    return found


def test_a_conjunction_of_nothing_in_particular() -> None:
    """No selectors match everything; one that matches nothing leaves nothing."""
    assert conjunction([]) == Selector()
    assert conjunction([selector({"matchLabels": {"a": "1"}}), NOTHING]) == NOTHING


@pytest.mark.parametrize(
    ("described", "text"),
    [
        pytest.param(None, "nothing", id="absent"),
        pytest.param({}, "any", id="empty"),
        pytest.param({"matchLabels": {"b": "2", "a": "1"}}, "a=1, b=2", id="labels"),
        pytest.param(expression("a", "NotIn", "1"), "a!=1", id="not one value"),
        pytest.param(expression("a", "In", "2", "1"), "a in (1,2)", id="some values"),
        pytest.param(expression("a", "NotIn", "2", "1"), "a notin (1,2)", id="not some values"),
        pytest.param(expression("a", "Exists"), "a", id="there"),
        pytest.param(expression("a", "DoesNotExist"), "!a", id="not there"),
    ],
)
def test_it_reads_as_kubectl_writes_it(described: Object | None, text: str) -> None:
    """The text of a selector, for sentences."""
    assert str(selector(described)) == text
    assert str(Term(selector(described), Scope(()), "zone")) == text


TEAM = "team"


@pytest.mark.parametrize(
    ("namespaces", "namespace_selector", "at_home", "abroad"),
    [
        pytest.param(None, None, True, False, id="neither: the pod's own"),
        pytest.param([], None, True, False, id="an empty list: the pod's own"),
        pytest.param(["other"], None, False, True, id="by name"),
        pytest.param(["vms", "other"], None, True, True, id="by names"),
        pytest.param(None, {}, True, True, id="an empty selector: all"),
        pytest.param(None, {"matchLabels": {TEAM: "a"}}, None, None, id="by a label: not known"),
        pytest.param(["vms"], {"matchLabels": {TEAM: "a"}}, True, None, id="by name or by a label"),
        pytest.param(None, expression(TEAM, "DoesNotExist"), None, None, id="without a label: not known"),
    ],
)
def test_the_namespaces_of_a_term(
    namespaces: list[str] | None, namespace_selector: Object | None, *, at_home: bool | None, abroad: bool | None
) -> None:
    """Names and selector are ORed. A selector with requirements can't be evaluated."""
    term = {"namespaces": namespaces, "namespaceSelector": namespace_selector, "labelSelector": {}}
    found = parse_terms([convert(term, PodAffinityTerm)], "vms")
    assert found
    assert (found[0].scope.covers("vms"), found[0].scope.covers("other")) == (at_home, abroad)
    assert found[0].matches("other", LABELS) is abroad
