"""Explanation: what is told of one object, as a value."""

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
from webhook.explain import explanation
from webhook.explain.api import names
from webhook.explain.sources import cluster
from webhook.explain.sources.described import Described
from webhook.files.documents import BadDocument

KEYS = [
    "object",
    "cluster",
    "entry",
    "notes",
    "hints",
    "running",
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
    """A script can rely on every key: what does not apply is null or empty."""
    found = explained(value)
    assert list(found) == KEYS
    assert list(found["optIn"]) == ["annotation", "clusterMode", "optedIn", "mode"]
    assert list(found["affinity"]) == ["before", "after"]


def test_a_claim_and_a_node_have_stable_keys() -> None:
    """The whole chain of a claim, and the verdict on a node that it leads to."""
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
    """The patch that is shown is the one that is served: applied to the pod it gives the affinity and annotation."""
    pod = a_pod("root")
    found = explained(pod)
    patched = jsonpatch.JsonPatch(found["patch"]).apply(pod)
    assert found["affinity"] == {"before": None, "after": patched["spec"]["affinity"]}
    assert found["annotation"] == patched["metadata"]["annotations"]["kubevirt-scheduler/decision"]
    assert found["annotation"].startswith("required on node-b")


def test_a_deeply_nested_object_is_bad_input() -> None:
    """Nesting beyond what can be encoded is refused in words, as the server refuses it."""
    value: Any = "x"
    for _ in range(200_000):
        value = [value]
    subject = explanation.Subject(kind="Pod", namespace="vms", name="a", source="stdin:1")
    question = explanation.Question(subject=subject, review={"request": value})
    with pytest.raises(BadDocument, match=r"^stdin:1: Pod: nested too deeply$"):
        explanation.explain(question, the_cluster(), Policy())


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
    """The annotation's own mode, the cluster's for true, and none for a pod that core leaves alone."""
    found = explained(a_pod("root", opt_in=value), mode=cluster)
    assert found["optIn"] == {"annotation": value, "clusterMode": cluster.value, "optedIn": opted_in, "mode": mode}
    assert found["decision"] == decision


def test_a_pod_that_stays_out_is_still_told_where_its_claims_are() -> None:
    """Claims and nodes are shown for information, and the text says that they did not count."""
    ran = run(as_yaml(a_pod("root", opt_in=None)))
    assert "Mode:            none: the rules stop here, so claims and nodes are shown for information only" in ran.out
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
    """What is no creation of a pod is left unchanged; nothing is looked up for it, and no section is shown empty."""
    review = a_review(a_pod("root"), **request_)
    found = explained(review)
    assert (found["decision"], found["reason"]) == ("unchanged", reason)
    assert (found["claims"], found["nodes"], found["patch"], found["annotation"]) == ([], [], [], None)
    text = run(json.dumps(review)).out
    assert "Claims" not in text
    assert "Nodes" not in text
    assert "Mode:            none: the rules stop here\n" in text


def test_a_review_without_an_object_is_named_by_its_request() -> None:
    """A DELETE has no object, but a name."""
    assert explained(a_review(None, operation="DELETE", name="db"))["object"]["name"] == "db"


def test_a_pod_that_has_its_node_is_told_to_ask_about_the_vm() -> None:
    """A running pod is left alone; the hint says what to explain instead."""
    found = explained(a_pod("root", nodeName="node-a"))
    assert found["reason"] == "NodeAlreadySet"
    assert found["hints"] == [explanation._RUNNING_HINTS[Entry.VIRT_LAUNCHER]]
    assert explained(a_pod("root"))["hints"] == []


def test_a_generic_ephemeral_volume_is_not_taken_for_a_claim_of_its_name() -> None:
    """The volume's claim does not exist yet; one that happens to have the volume's name has no part in it."""
    pod = a_pod()
    pod["spec"]["volumes"] = [{"name": "root", "ephemeral": {}}]
    (claim,) = explained(pod)["claims"]
    assert claim["reason"] == "EphemeralClaim"
    assert (claim["phase"], claim["accessModes"], claim["persistentVolume"]) == (None, [], None)


def test_a_candidate_that_does_not_exist_is_among_the_nodes() -> None:
    """Candidates come first, also one that the cluster does not have."""
    found = explained(a_pod("gone"))
    assert [node["name"] for node in found["nodes"]] == ["node-gone", "node-a", "node-b", "node-c"]
    assert found["nodes"][0]["reason"] == "NodeNotFound"
    assert [node["candidate"] for node in found["nodes"]] == [True, False, False, False]


def test_a_pod_that_carries_the_decision_shows_no_change() -> None:
    """A second admission changes nothing: the decision is told, the patch is empty, the affinity unchanged."""
    pod = a_pod("root")
    patched = jsonpatch.JsonPatch(explained(pod)["patch"]).apply(pod)
    found = explained(patched)
    assert (found["decision"], found["patch"]) == ("required", [])
    assert found["affinity"]["before"] == found["affinity"]["after"]
    assert run(as_yaml(patched)).out.endswith("Affinity:\n  unchanged\n")


def test_manifests_leave_nothing_unread() -> None:
    """Needs is an answer for live clusters; over manifests it would be a bug, named as one."""
    needs = NeedObjects((ObjectRef(Kind.NODE, NamespacedName("", "node-a")),))
    with pytest.raises(AssertionError, match="core asked to read Node node-a, which manifests never leave unread"):
        cluster.settled(the_cluster(), lambda _: needs)


class _Endless(Described):
    """Reads whatever it is told to, to no avail."""

    def read(self, refs: Sequence[Ref]) -> None:
        """Nothing comes of it."""


def test_what_is_never_settled_is_given_up() -> None:
    """A core that goes on asking would be a bug, and no endless loop."""
    needs = NeedObjects((ObjectRef(Kind.NODE, NamespacedName("", "node-a")),))
    with pytest.raises(AssertionError, match="core still needs something after 16 rounds"):
        cluster.settled(_Endless(the_cluster().view, "nowhere"), lambda _: needs)


def test_the_facts_have_an_origin() -> None:
    """Whoever reads an explanation sees what cluster it is about."""
    assert explained(a_pod("root"))["cluster"] == "cluster.yaml"
    assert run(as_yaml(a_pod("root"))).out.splitlines()[1] == "  Cluster: cluster.yaml"


def test_files_have_no_pods_to_show() -> None:
    """A cluster in files has no virt-launcher pods, and the text no section for them."""
    assert explained(a_vm("root"))["running"] == []
    assert "Pods now" not in run(as_yaml(a_vm("root"))).out


def test_files_hold_nothing_by_name() -> None:
    """The command line refuses names over manifests; so does the cluster itself, with the way that there is."""
    (named,) = names.parse(["vm/db"])
    with pytest.raises(BadDocument, match=r"^vm/db: cluster\.yaml is not looked through .* --filename FILE$"):
        the_cluster().find(named, "vms")
