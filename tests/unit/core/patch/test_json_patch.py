"""RFC 6902 operations as the API server carries them out."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.patch.decision_patch import NotApplicable, Places, operations, prove

PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
KEYS: Final = st.sampled_from(["a", "b", "x/y~z", ""])
VALUES: Final = st.recursive(
    st.booleans() | st.integers(-2, 2) | st.text("ab", max_size=1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
PLACES: Final = st.builds(
    Places,
    st.none() | st.dictionaries(KEYS, st.text("ab", max_size=1), max_size=3),
    st.none() | st.dictionaries(KEYS, VALUES, max_size=3),
)


def pod_of(places: Places) -> dict[str, Any]:
    """A pod with these places, and with other fields."""
    pod: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"nodeName": "n"}}
    if places.annotations is not None:
        pod["metadata"]["annotations"] = deepcopy(places.annotations)
    if places.affinity is not None:
        pod["spec"]["affinity"] = deepcopy(places.affinity)
    return pod


@given(PLACES, PLACES)
def test_the_operations_make_the_one_of_the_other(old: Places, new: Places) -> None:
    """For any two states, and nothing else in the pod changes. The library carries the operations out."""
    found = operations(old, new)
    assert jsonpatch.JsonPatch(found).apply(pod_of(old)) == pod_of(new)
    prove(old, new, found)
    assert operations(old, old) == []


OLD: Final = Places({"a": "b"}, {"x": [1]})


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "remove", "path": "/metadata/annotations/none"}, id="nothing to remove"),
        pytest.param({"op": "remove", "path": "/spec/affinity/x/1"}, id="no such element"),
        pytest.param({"op": "remove", "path": "/status/x"}, id="a place that is not ours"),
        pytest.param({"op": "remove", "path": "/spec/affinity/x/y"}, id="an index that is none"),
        pytest.param({"op": "remove", "path": "/metadata/annotations/a"}, id="another result"),
        pytest.param({"op": "add", "path": "/spec/affinity/y/-", "value": 1}, id="no such parent"),
        pytest.param({"op": "add", "path": "/spec/affinity/x/-", "value": 2}, id="another result of an addition"),
    ],
)
def test_operations_that_are_not_proven_are_refused(operation: dict[str, Any]) -> None:
    """The API server would reject the pod, or the pod would have what was not decided."""
    with pytest.raises(NotApplicable):
        prove(OLD, OLD, [operation])


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param(Places(None, {"nodeAffinity": {PREFERRED: [{"weight": 2}, {"weight": 1}]}}), True, id="order"),
        pytest.param(Places({}, {"nodeAffinity": {PREFERRED: [{"weight": 1}, {"weight": 2}]}, "a": {}}), True, id="{}"),
        pytest.param(Places(None, {"nodeAffinity": {PREFERRED: [{"weight": 1}]}}), False, id="one less"),
        pytest.param(Places(None, {"nodeAffinity": {}}), False, id="nothing"),
        pytest.param(Places({"a": ""}, {"nodeAffinity": {PREFERRED: [{"weight": 1}, {"weight": 2}]}}), False, id="a"),
    ],
)
def test_places_that_mean_the_same_are_equal(other: Places, *, same: bool) -> None:
    """An empty object means the same as an absent one, and preferences have no order."""
    places = Places(None, {"nodeAffinity": {PREFERRED: [{"weight": 1}, {"weight": 2}]}})
    assert (places.meaning == other.meaning) is same


def test_null_within_a_list_means_what_absent_does() -> None:
    """Of equal terms there is no operation, and the result is what was decided."""
    absent, null = (
        Places(None, {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [expression]}}]}})
        for expression in ({"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Exists", "values": None})
    )
    assert operations(absent, null) == []
    prove(absent, null, [])
