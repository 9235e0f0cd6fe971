"""explain on a large cluster: the short list of a share-manager pod; and a VM whose share-manager pod comes later."""

from __future__ import annotations

import json
from typing import Any

import jsonpatch
import pytest
from msgspec import convert
from support.drivers.explaining import a_pod, run
from support.drivers.explaining import explained as explained_in
from support.objects import builders
from support.scenarios import cold_start
from support.scenarios.cold_start import created, explain, explained

from webhook.core.api.pod import Pod
from webhook.core.patch.unpatch import as_created
from webhook.objects.fields import as_fields

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ZONE = {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}


def large(count: int = 120) -> list[dict[str, Any]]:
    """The cold start on a cluster with this number of further nodes."""
    return [*cold_start.cluster(), *cold_start.nodes(*(f"more-{index:03}" for index in range(count)))]


OWN_ROWS: dict[str, tuple[dict[str, Any] | None, int]] = {
    "no affinity": (None, 62),
    "a StorageClass's topology": ({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [ZONE]}}}, 62),
    "terms of its own": ({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [ZONE, ZONE, ZONE]}}}, 60),
}


@pytest.mark.parametrize(("own", "left_out"), OWN_ROWS.values(), ids=OWN_ROWS)
def test_a_short_list_is_counted_in_the_text_and_named_in_json(own: dict[str, Any] | None, left_out: int) -> None:
    """Text shows the size of the short list and its first terms; JSON has every name."""
    pod = created(affinity=own) if own else created()
    found, text = explained(pod, large()), explain(pod, large()).out
    shortlist = found["shortlist"]
    assert (shortlist[0], len(set(shortlist))) == ("node-b", len(shortlist))
    assert (
        f"  Short list:  any of {len(shortlist)} nodes, so that kube-scheduler scores each of them (-o json lists them;"
        in text
    )
    terms = found["affinity"]["after"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert f"\n  and {left_out} more nodeSelectorTerms like these, for the other nodes of the short list\n" in text
    assert left_out < len(terms) <= 64
    assert len(text.splitlines()) < 100


def test_a_repeated_preference_is_shown_once() -> None:
    """Beside Longhorn's preference against a node and a soft taint the webhook writes several copies."""
    field = {"key": "metadata.name", "operator": "NotIn", "values": ["node-a"]}
    avoids_node = {"weight": 100, "preference": {"matchFields": [field]}}
    pod = created(affinity={"nodeAffinity": {PREFERRED: [avoids_node]}})
    tainted = builders.node("node-b", taints=["old=:PreferNoSchedule"])
    objects = [tainted if each == builders.node("node-b") else each for each in cold_start.cluster()]
    found, text = explained(pod, objects), explain(pod, objects).out
    preferences = found["affinity"]["after"]["nodeAffinity"][PREFERRED]
    assert len(preferences) > 2
    assert text.count("+    - weight: 100\n") == 2  # one of them is the pod affinity
    assert (
        f"\n  and {len(preferences) - 2} more copies of these preferences, so that they outweigh the pod's own ones"
        in text
    )


def test_a_pod_that_repeats_itself_is_shown_whole() -> None:
    """The terms that the pod had before are shown completely."""
    own = builders.node_affinity(preferred={"node-a": 7})["nodeAffinity"][PREFERRED] * 2
    text = explain(created(affinity={"nodeAffinity": {PREFERRED: own}}), cold_start.cluster()).out
    assert text.count("     - weight: 7\n") == 2


def test_a_small_cluster_has_no_short_list() -> None:
    """kube-scheduler scores every node of a small cluster."""
    assert explained(created(), cold_start.cluster())["shortlist"] == []
    assert "Short list" not in explain(created(), cold_start.cluster()).out


@pytest.mark.parametrize("own", [affinity for affinity, _ in OWN_ROWS.values()], ids=OWN_ROWS)
def test_a_short_list_is_taken_out_again(own: dict[str, Any] | None) -> None:
    """A running share-manager pod is explained as Longhorn created it, without what the webhook wrote."""
    pod = created(affinity=own) if own else created()
    found = explained(pod, large())
    placed = jsonpatch.JsonPatch(found["patch"]).apply(pod)
    assert len(json.dumps(placed)) > len(json.dumps(pod)) + 1000
    assert as_fields(as_created(convert(placed, Pod))).get("spec").get("affinity") == own


def test_a_vm_whose_share_manager_is_stopped_is_followed_by_it() -> None:
    """The VM starts on any node, and the text says that its share-manager pod comes later."""
    objects = json.dumps({"apiVersion": "v1", "kind": "List", "items": cold_start.cluster()})
    assert explained_in(a_pod("disk"), cluster=objects)["followers"] == ["pvc-disk"]
    text = run(json.dumps(a_pod("disk")), cluster=objects).out
    sentence = "when this pod has a node, the webhook steers the share-manager pod of pvc-disk to it"
    assert f"  Afterwards:  {sentence}\n" in text


NOT_FOLLOWED: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "one that did not opt in": (a_pod("disk", opt_in=None), []),
    "one that said no": (a_pod("disk", opt_in="false"), []),
    "one without that claim": (a_pod(), []),
    "one whose share-manager's pod is made already": (a_pod("disk"), [created()]),
    "one whose share-manager runs": (a_pod("disk"), [builders.share_manager_pod("pvc-disk", nodeName="node-a")]),
}


@pytest.mark.parametrize(("pod", "more"), NOT_FOLLOWED.values(), ids=NOT_FOLLOWED)
def test_other_vms_have_no_followers(pod: dict[str, Any], more: list[dict[str, Any]]) -> None:
    """Only a VM with such claims has followers."""
    objects = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*cold_start.cluster(), *more]})
    assert explained_in(pod, cluster=objects)["followers"] == []
    assert "Afterwards" not in run(json.dumps(pod), cluster=objects).out


@pytest.mark.parametrize("phase", ["Failed", "Running"])
def test_a_finished_share_manager_pod_is_created_again(phase: str) -> None:
    """It has failed or is being deleted: Longhorn creates the next one after the VM has a node."""
    over = builders.share_manager_pod("pvc-disk", phase=phase, deleting=phase == "Running", nodeName="node-a")
    objects = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*cold_start.cluster(), over]})
    assert explained_in(a_pod("disk"), cluster=objects)["followers"] == ["pvc-disk"]
