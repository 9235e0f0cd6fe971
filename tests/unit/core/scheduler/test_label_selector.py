from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from support.control_plane.rendering import selects

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.scheduler.label_selector import Selector, Term, parse_query, parse_terms

Object = dict[str, Any]
LABELS = {"app": "db", "tier": ""}


def expression(key: str, operator: str | None, *values: str) -> Object:
    """A selector of one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def terms(described: Object | None, **more: Any) -> tuple[Term, ...]:
    """The term of a pod in `vms` with this selector; none if it selects no pod."""
    return parse_terms([convert({"labelSelector": described, "topologyKey": "zone", **more}, PodAffinityTerm)], "vms")


def selector(described: Object) -> Selector:
    """A selector that is there."""
    return terms(described)[0].selector


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
def test_what_does_not_parse_is_left_out(described: Object) -> None:
    """kube-scheduler ignores all terms of a pod that has one. Here the term can be meant for more pods."""
    assert terms(described)[0].matches("vms", {"app": "db", "tier": "x"})
    assert not [term for term in terms(described) if not term.selector.matches({"app": "db"})]


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


@given(described=_SELECTORS, labels=_LABELS)
def test_it_agrees_with_the_model(described: Object | None, labels: dict[str, str]) -> None:
    """Any selector matches what its JSON says."""
    expected = described is not None and selects(described, labels)
    assert any(term.matches("vms", labels) for term in terms(described)) is expected


@pytest.mark.parametrize(
    ("described", "text"),
    [
        pytest.param({}, "any", id="empty"),
        pytest.param({"matchLabels": {"b": "2", "a": "1"}}, "a=1, b=2", id="labels"),
        pytest.param(expression("a", "NotIn", "1"), "a!=1", id="not one value"),
        pytest.param(expression("a", "In", "2", "1"), "a in (1,2)", id="some values"),
        pytest.param(expression("a", "NotIn", "2", "1"), "a notin (1,2)", id="not some values"),
        pytest.param(expression("a", "Exists"), "a", id="there"),
        pytest.param(expression("a", "DoesNotExist"), "!a", id="not there"),
    ],
)
def test_it_reads_as_kubectl_writes_it(described: Object, text: str) -> None:
    """The text of a selector, for sentences."""
    assert str(selector(described)) == text
    assert str(terms(described)[0]) == text


TEAM = "team"


@pytest.mark.parametrize(
    ("namespaces", "namespace_selector", "at_home", "abroad"),
    [
        pytest.param(None, None, True, False, id="neither: the pod's own"),
        pytest.param([], None, True, False, id="an empty list: the pod's own"),
        pytest.param(["other"], None, False, True, id="by name"),
        pytest.param(["vms", "other"], None, True, True, id="by names"),
        pytest.param(None, {}, True, True, id="an empty selector: all"),
        pytest.param(None, {"matchLabels": {TEAM: "a"}}, True, True, id="by a label: can be any"),
        pytest.param(["vms"], {"matchLabels": {TEAM: "a"}}, True, True, id="by name or by a label"),
        pytest.param(None, expression(TEAM, "DoesNotExist"), True, True, id="without a label: can be any"),
    ],
)
def test_the_namespaces_of_a_term(
    namespaces: list[str] | None, namespace_selector: Object | None, *, at_home: bool, abroad: bool
) -> None:
    """Names and selector are ORed. The labels of namespaces are not known."""
    [term] = terms({}, namespaces=namespaces, namespaceSelector=namespace_selector)
    assert (term.matches("vms", LABELS), term.matches("other", LABELS)) == (at_home, abroad)


QUERIED: Final = {"app": "db", "kubevirt.io/domain": "db01", "old": ""}
QUERIES: Final = {
    "app=db": True,
    "app==db": True,
    "app=web": False,
    "app!=web": True,
    "tier!=test": True,
    "app in (web, db)": True,
    "app notin (web,db)": False,
    "tier notin (a)": True,
    "app": True,
    "tier": False,
    "!app": False,
    "!tier": True,
    "old=": True,
    "kubevirt.io/domain=db01,app in (db,web),!tier": True,
    "app=db, tier": False,
}


@pytest.mark.parametrize(("text", "matches"), QUERIES.items(), ids=QUERIES)
def test_a_query_matches_as_in_kubectl(text: str, *, matches: bool) -> None:
    """Also where the label is absent. The text that is sent to the API server has the same meaning."""
    selector = parse_query(text)
    assert selector.matches(QUERIED) is matches
    sent = ",".join(map(str, selector.requirements))
    assert parse_query(sent) == selector


@pytest.mark.parametrize("text", ["", "a b", "a=b=c", "=b", "a in b", "a in ()", "a>1", "a,,b", "-a=b", "a=b c"])
def test_another_text_is_refused(text: str) -> None:
    """With examples of what was expected."""
    with pytest.raises(ValueError, match="expected a label selector such as app=db"):
        parse_query(text)
