"""RFC 6902 operations as the API server carries them out."""

from typing import Any

import jsonpatch
import pytest
from msgspec import convert
from support.objects.builders import virt_launcher_pod

from webhook.core.api.pod import Pod
from webhook.core.patch.json_patch import NotApplicable, add, apply, copied, escaped, remove, tree_of

Object = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONE = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}


def flaw(pod: Pod, operations: list[Object]) -> str | None:
    """Return the message of the operation that does not apply, None if all apply."""
    try:
        apply(tree_of(pod), operations)
    except NotApplicable as problem:
        return str(problem)
    return None


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        pytest.param({"op": "add", "path": "/spec/affinity/nodeAffinity", "value": {}}, True, id="a parent is absent"),
        pytest.param({"op": "add", "path": "/spec/affinity", "value": {}}, False, id="the parent is there"),
        pytest.param({"op": "add", "path": "/metadata/annotations/a~1b~0c", "value": ""}, False, id="escapes"),
        pytest.param({"op": "add", "path": "/metadata/annotations/a/b", "value": ""}, True, id="no escape"),
        pytest.param({"op": "add", "path": "/status/x", "value": ""}, True, id="a place that is not ours"),
        pytest.param({"op": "copy", "from": "/spec/affinity/x", "path": "/spec/x"}, True, id="a source that is absent"),
        pytest.param({"op": "remove", "path": "/metadata/annotations/none"}, True, id="nothing to remove"),
        pytest.param({"op": "remove", "path": "/spec/affinity"}, False, id="something to remove"),
    ],
)
def test_an_operation_that_does_not_apply_is_named(operation: Object, *, problem: bool) -> None:
    """The API server would reject the pod. The message has the operation and its path."""
    found = flaw(convert(virt_launcher_pod(), Pod), [operation])
    assert found == (f"{operation['op']} {operation['path']}" if problem else None)


TERMS = f"/spec/affinity/nodeAffinity/{REQUIRED}/nodeSelectorTerms"


@pytest.mark.parametrize(
    ("operations", "problem"),
    [
        pytest.param([{"op": "copy", "from": f"{TERMS}/0", "path": f"{TERMS}/-"}], False, id="a copy behind"),
        pytest.param([{"op": "copy", "from": f"{TERMS}/7", "path": f"{TERMS}/-"}], True, id="a copy of no term"),
        pytest.param([{"op": "copy", "from": f"{TERMS}/x", "path": f"{TERMS}/-"}], True, id="an index that is none"),
        pytest.param([{"op": "add", "path": f"{TERMS}/0", "value": {}}], False, id="an insertion"),
        pytest.param([{"op": "add", "path": f"{TERMS}/7/matchFields", "value": []}], True, id="in no term"),
        pytest.param([{"op": "add", "path": f"{TERMS}/1", "value": {}}], False, id="an insertion behind the last"),
        pytest.param([{"op": "add", "path": f"{TERMS}/2", "value": {}}], True, id="an insertion with a hole"),
        pytest.param(
            [{"op": "remove", "path": f"{TERMS}/0"}, {"op": "remove", "path": f"{TERMS}/0"}], True, id="twice"
        ),
        pytest.param(
            [
                {"op": "copy", "from": f"{TERMS}/0", "path": f"{TERMS}/-"},
                {"op": "add", "path": f"{TERMS}/1/matchFields", "value": []},
                {"op": "add", "path": f"{TERMS}/1/matchFields/-", "value": {}},
            ],
            False,
            id="one after the other",
        ),
        pytest.param(
            [
                {"op": "copy", "from": "/metadata/annotations/a", "path": "/metadata/annotations/b"},
                {"op": "add", "path": "/metadata/annotations/b/c", "value": 1},
            ],
            True,
            id="inside a text",
        ),
    ],
)
def test_operations_are_applied_in_order(operations: list[Object], *, problem: bool) -> None:
    """Each operation sees the result of those before it, on a copy. The pod itself stays."""
    own = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [ZONE]}}}
    pod = convert(virt_launcher_pod(affinity=own, annotations={"a": "x"}), Pod)
    assert (flaw(pod, operations) is not None) is problem
    assert pod == convert(virt_launcher_pod(affinity=own, annotations={"a": "x"}), Pod)


def test_the_result_is_that_of_the_jsonpatch_library() -> None:
    """Both apply the same operations to the same tree."""
    document = {"a": {"x/y~z": [1, 2, 3]}, "b": {}}
    path = f"/a/{escaped('x/y~z')}"
    operations = [remove(f"{path}/1"), add(f"{path}/-", 4), copied(path, "/b/c"), remove(path)]
    expected = jsonpatch.apply_patch(document, operations)
    apply(document, operations)
    assert document == expected == {"a": {}, "b": {"c": [1, 3, 4]}}
