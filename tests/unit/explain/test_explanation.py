"""Explanation: the fields for one object, as scripts read them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import jsonpatch
import pytest
from support.drivers.explaining import a_pod, a_review, a_vm, as_yaml, explained, run, the_cluster

from webhook.core.admit import Entry
from webhook.core.api.meta import NamespacedName
from webhook.core.opt_in import Mode, Policy
from webhook.core.view import Kind, NeedObjects, ObjectRef, Ref
from webhook.explain import explanation, names
from webhook.explain.evaluate import _RUNNING_HINTS, explain
from webhook.explain.explain_request import ExplainRequest
from webhook.explain.sources import cluster_reader
from webhook.explain.sources.manifests_reader import ManifestsReader
from webhook.objects.documents import BadDocument

KEYS = [
    "object",
    "cluster",
    "entry",
    "notes",
    "hints",
    "running",
    "now",
    "optIn",
    "claims",
    "volume",
    "nodes",
    "decision",
    "reason",
    "sentence",
    "required",
    "preferred",
    "shortlist",
    "followers",
    "annotation",
    "patch",
    "affinity",
]


@pytest.mark.parametrize("value", [a_pod("root"), a_pod(opt_in=None), a_review(None, operation="DELETE")])
def test_the_keys_are_the_same_whatever_was_decided(value: dict[str, Any]) -> None:
    """A script can rely on every key: a key that does not apply is null or empty."""
    found = explained(value)
    assert list(found) == KEYS
    assert list(found["optIn"]) == ["annotation", "namespaceLabel", "clusterMode", "optedIn", "mode", "by"]
    assert list(found["affinity"]) == ["before", "after"]


def test_a_claim_and_a_node_have_stable_keys() -> None:
    """All objects behind a claim, and the result of a node that a claim leads to."""
    found = explained(a_pod("root"))
    assert found["claims"] == [
        {
            "claim": "root",
            "phase": "Bound",
            "accessModes": ["ReadWriteMany"],
            "persistentVolume": "pv-root",
            "volumeHandle": "vol-root",
            "shareManager": {"state": "running", "ownerID": "node-c"},
            "pod": {"name": "share-manager-vol-root", "phase": "Running", "node": "node-b", "terminating": False},
            "reason": "ShareManagerPod",
            "sentence": "claim root: pod share-manager-vol-root is on node node-b, which outweighs ShareManager "
            "ownerID node-c",
            "node": "node-b",
            "firm": True,
        }
    ]
    assert found["nodes"][0] == {
        "name": "node-b",
        "candidate": True,
        "feasible": True,
        "reason": "NodeFeasible",
        "sentence": "the pod can run on node node-b",
    }
    assert found["preferred"] == [{"node": "node-b", "weight": 100}]


def test_the_patch_leads_from_before_to_after() -> None:
    """The patch is the one of the webhook: applied to the pod, it gives the affinity and the annotation."""
    pod = a_pod("root")
    found = explained(pod)
    patched = jsonpatch.JsonPatch(found["patch"]).apply(pod)
    assert found["affinity"] == {"before": None, "after": patched["spec"]["affinity"]}
    assert found["annotation"] == patched["metadata"]["annotations"]["kubevirt-scheduler/decision"]
    assert found["annotation"].startswith("required on node-b")


def test_a_deeply_nested_object_is_bad_input() -> None:
    """An object that is nested too deeply to be encoded is an error with a sentence, as in the webhook."""
    value: Any = "x"
    for _ in range(200_000):
        value = [value]
    subject = explanation.Subject(kind="Pod", namespace="vms", name="a", source="stdin:1")
    question = ExplainRequest(subject=subject, review={"request": value})
    with pytest.raises(BadDocument, match=r"^stdin:1: Pod: nested too deeply$"):
        explain(question, the_cluster(), Policy())


MODE_ROWS = {
    "true is the cluster's": ("true", Mode.PREFERRED, "preferred", True, "preferred"),
    "required is the VM's": ("required", Mode.PREFERRED, "required", True, "required"),
    "preferred is the VM's": ("preferred", Mode.REQUIRED, "preferred", True, "preferred"),
    "false": ("false", Mode.REQUIRED, None, False, "unchanged"),
    "off": ("true", Mode.OFF, None, False, "unchanged"),
    "a typo": ("truee", Mode.REQUIRED, None, False, "unchanged"),
    "absent": (None, Mode.REQUIRED, None, False, "unchanged"),
}


@pytest.mark.parametrize(("value", "cluster", "mode", "opted_in", "decision"), MODE_ROWS.values(), ids=MODE_ROWS)
def test_the_mode_is_what_the_pod_asked_for(
    value: str | None,
    cluster: Mode,
    mode: str | None,
    opted_in: bool,  # noqa: FBT001 - a row
    decision: str,
) -> None:
    """The mode of the annotation; the cluster's mode for `true`; none for a pod that does not opt in."""
    found = explained(a_pod("root", opt_in=value), mode=cluster)
    shown = [value, None, cluster.value, opted_in, mode, "the VM's annotation" if opted_in else None]
    assert list(found["optIn"].values()) == shown
    assert found["decision"] == decision


def test_a_pod_without_an_opt_in_still_has_its_claims_shown() -> None:
    """The text says that its claims and nodes are for information only."""
    ran = run(as_yaml(a_pod("root", opt_in=None)))
    assert (
        "Mode:            none: the webhook leaves the pod unchanged; claims and nodes are shown for information only"
        in ran.out
    )
    assert "=   node node-b            ShareManagerPod" in ran.out
    assert "  Outcome:  unchanged\n  Because:  NotOptedIn: " in ran.out
    assert ran.out.endswith("Affinity:\n  unchanged\n")


FOREIGN_ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "a DELETE": ({"operation": "DELETE", "object": None, "name": "db"}, "NotACreate"),
    "an UPDATE": ({"operation": "UPDATE"}, "NotACreate"),
    "a subresource": ({"subResource": "eviction"}, "Subresource"),
    "no pod": ({"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}}, "NotAPod"),
}


@pytest.mark.parametrize(("request_", "reason"), FOREIGN_ROWS.values(), ids=FOREIGN_ROWS)
def test_a_review_of_something_else_has_a_reason(request_: dict[str, Any], reason: str) -> None:
    """A request that creates no pod is left unchanged; no object is read, and no empty section is shown."""
    review = a_review(a_pod("root"), **request_)
    found = explained(review)
    assert (found["decision"], found["reason"]) == ("unchanged", reason)
    assert (found["claims"], found["nodes"], found["patch"], found["annotation"]) == ([], [], [], None)
    text = run(json.dumps(review)).out
    assert "Claims" not in text
    assert "Nodes" not in text
    assert "Mode:            none: the webhook leaves the pod unchanged\n" in text


def test_a_review_without_an_object_is_named_by_its_request() -> None:
    """A DELETE has a name, and no object."""
    assert explained(a_review(None, operation="DELETE", name="db"))["object"]["name"] == "db"


def test_for_a_pod_with_a_node_a_hint_names_the_vm() -> None:
    """A running pod is left unchanged; the hint says what to explain instead."""
    found = explained(a_pod("root", nodeName="node-a"))
    assert found["reason"] == "NodeAlreadySet"
    assert found["hints"] == [_RUNNING_HINTS[Entry.VIRT_LAUNCHER]]
    assert explained(a_pod("root"))["hints"] == []


def test_a_generic_ephemeral_volume_is_not_taken_for_a_claim_of_its_name() -> None:
    """The volume's claim does not exist yet. A claim that has the volume's name by chance does not count."""
    pod = a_pod()
    pod["spec"]["volumes"] = [{"name": "root", "ephemeral": {}}]
    (claim,) = explained(pod)["claims"]
    assert claim["reason"] == "EphemeralClaim"
    assert (claim["phase"], claim["accessModes"], claim["persistentVolume"]) == (None, [], None)


def test_a_candidate_that_does_not_exist_is_among_the_nodes() -> None:
    """Candidates come first, even a candidate that does not exist."""
    found = explained(a_pod("gone"))
    assert [node["name"] for node in found["nodes"]] == ["node-gone", "node-a", "node-b", "node-c"]
    assert found["nodes"][0]["reason"] == "NodeNotFound"
    assert [node["candidate"] for node in found["nodes"]] == [True, False, False, False]


def test_a_pod_that_carries_the_decision_shows_no_change() -> None:
    """A second admission has the same decision, an empty patch, and no change of the affinity."""
    pod = a_pod("root")
    patched = jsonpatch.JsonPatch(explained(pod)["patch"]).apply(pod)
    found = explained(patched)
    assert (found["decision"], found["patch"]) == ("required", [])
    assert found["affinity"]["before"] == found["affinity"]["after"]
    assert run(as_yaml(patched)).out.endswith("Affinity:\n  unchanged\n")


def test_manifests_leave_nothing_unread() -> None:
    """Core needs no further objects of manifests; if it did, an error would name the fault of the program."""
    needs = NeedObjects((ObjectRef(Kind.NODE, NamespacedName("", "node-a")),))
    with pytest.raises(AssertionError, match="core asked to read Node node-a, although all manifests were read"):
        cluster_reader.answer_when_read(the_cluster(), lambda _: needs)


class _Endless(ManifestsReader):
    """A cluster that reads nothing."""

    def read(self, refs: Sequence[Ref]) -> None:
        """Read nothing."""


def test_a_core_that_needs_objects_without_end_is_an_error() -> None:
    """A core that always needs more objects would be a fault of the program, and not an endless loop."""
    needs = NeedObjects((ObjectRef(Kind.NODE, NamespacedName("", "node-a")),))
    with pytest.raises(AssertionError, match="core still needs objects after 16 rounds of reads"):
        cluster_reader.answer_when_read(_Endless(the_cluster().view, "nowhere"), lambda _: needs)


def test_the_facts_have_an_origin() -> None:
    """An explanation names its cluster."""
    assert explained(a_pod("root"))["cluster"] == "cluster.yaml"
    assert run(as_yaml(a_pod("root"))).out.splitlines()[1] == "  Cluster: cluster.yaml"


def test_files_have_no_pods_to_show() -> None:
    """For a cluster in files, the text has no section of current pods."""
    assert explained(a_vm("root"))["running"] == []
    assert "Pods now" not in run(as_yaml(a_vm("root"))).out


def test_a_name_that_files_do_not_describe_is_an_error() -> None:
    """The sentence says that no object of this kind is described, or that none has this name."""
    (named,) = names.parse(["vm/db"])
    with pytest.raises(
        BadDocument,
        match=r"^vm/db: cluster\.yaml: no VirtualMachine is described; .* --filename FILE$",
    ):
        the_cluster().find(named, "vms")
