"""explain for share-manager pods: the VMs of the volume, and the decision that follows from them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.drivers.explaining import a_review
from support.objects import builders
from support.scenarios import cold_start
from support.scenarios.cold_start import PASSPHRASE, VOLUME, created, encrypted, explain, explained

from webhook.core.admit import Entry
from webhook.core.opt_in import Mode
from webhook.explain.evaluate import _RUNNING_HINTS
from webhook.objects.documents import BadDocument

COLD_START_TEXT = """\
Pod longhorn-system/share-manager-pvc-disk (stdin:1)
  Cluster: cluster.yaml

Volume:
  pvc-disk
    ->  ShareManager           stopped, ownerID node-c
    ->  PersistentVolume       pvc-disk
    ->  PersistentVolumeClaim  vms/disk, Bound, ReadWriteMany
    ->  VM                     db, opted in ("true"): pod virt-launcher-db, Running, on node-b
    ->  Ticket                 csi-attacher, node-b
    =   node node-b            ConsumerOnNode: claim vms/disk: VM db uses it, and its pod virt-launcher-db is on node \
node-b

Nodes (3):
  NODE    CANDIDATE  FEASIBLE  REASON
  node-b  yes        yes       NodeFeasible
  node-a  -          yes       NodeFeasible
  node-c  -          yes       NodeFeasible

Decision:
  Outcome:     preferred on node-b
  Because:     ConsumerOnNode: claim vms/disk: VM db uses it, and its pod virt-launcher-db is on node node-b
  Preferred:   node-b (weight 100)
  Annotation:  kubevirt-scheduler/decision: preferred on node-b: ConsumerOnNode: claim vms/disk: VM db uses it, and \
its pod virt-launcher-db is on node node-b

Affinity:
  --- before
  +++ after
  @@ -0,0 +1,10 @@
  +affinity:
  +  podAffinity:
  +    preferredDuringSchedulingIgnoredDuringExecution:
  +    - weight: 100
  +      podAffinityTerm:
  +        labelSelector:
  +          matchLabels:
  +            longhorn.io/component: instance-manager
  +            longhorn.io/node: node-b
  +        topologyKey: kubernetes.io/hostname
"""


def test_a_cold_start_is_shown_in_full() -> None:
    """The text has the volume's VMs, the tickets, each node, the decision, and the affinity as a diff."""
    ran = explain(created(), cold_start.cluster())
    assert (ran.code, ran.err, ran.out) == (0, "", COLD_START_TEXT)


def test_a_volume_has_stable_keys() -> None:
    """The keys that a script reads of a volume, its claims, their VMs and the tickets."""
    found = explained(created(), cold_start.cluster())
    assert (found["entry"], found["claims"], found["shortlist"], found["followers"]) == ("share-manager", [], [], [])
    launcher = {"name": "virt-launcher-db", "phase": "Running", "node": "node-b", "terminating": False}
    vm = {"vm": "db", "pod": launcher, "annotation": "true", "mode": "required"}
    assert found["volume"] == {
        "volume": VOLUME,
        "shareManager": {"state": "stopped", "ownerID": "node-c"},
        "pod": None,
        "claims": [
            {
                "claim": "vms/disk",
                "persistentVolume": VOLUME,
                "phase": "Bound",
                "accessModes": ["ReadWriteMany"],
                "vms": [vm],
            }
        ],
        "tickets": [{"id": "csi-attacher-0", "type": "csi-attacher", "node": "node-b"}],
        "consumers": [
            {"claim": "vms/disk", "reason": "ConsumerOnNode", "sentence": found["sentence"], "node": "node-b"}
        ],
    }
    assert found["optIn"] == {
        "annotation": None,
        "namespaceLabel": None,
        "clusterMode": "required",
        "optedIn": True,
        "mode": None,
        "by": None,
    }


def test_a_review_is_asked_by_the_rules_of_its_pod() -> None:
    """An AdmissionReview of a share-manager pod is decided by the entry for share-managers."""
    review = a_review(created(), namespace="longhorn-system")
    assert explained(review, cold_start.cluster())["preferred"] == [{"node": "node-b", "weight": 100}]
    elsewhere = explained(a_review(created(), namespace="vms"), cold_start.cluster())
    assert (elsewhere["decision"], elsewhere["reason"]) == ("unchanged", "NotShareManager")


VM_ROWS: dict[str, tuple[dict[str, Any], str, str]] = {
    "another wish of its own": (
        {"node": "node-b", "opt_in": "preferred"},
        'VM                     db, opted in ("preferred"): pod virt-launcher-db, Running, on node-b',
        "preferred",
    ),
    "none": (
        {"node": "node-b", "opt_in": None},
        "VM                     db, not opted in (no annotation): pod virt-launcher-db, Running, on node-b",
        "unchanged",
    ),
    "a no": (
        {"node": "node-b", "opt_in": "false"},
        'VM                     db, not opted in ("false"): pod virt-launcher-db, Running, on node-b',
        "unchanged",
    ),
    "none yet on a node": (
        {},
        'VM                     db, opted in ("true"): pod virt-launcher-db, Pending, not scheduled',
        "preferred",
    ),
    "one that leaves": (
        {"node": "node-b", "deleting": True},
        'VM                     db, opted in ("true"): pod virt-launcher-db, Running, terminating, on node-b',
        "preferred",
    ),
}


@pytest.mark.parametrize(("pod", "line", "decision"), VM_ROWS.values(), ids=VM_ROWS)
def test_each_vm_is_shown_with_its_opt_in_and_its_pod(pod: dict[str, Any], line: str, decision: str) -> None:
    """Whether the VM counts, its annotation, and the node of its pod."""
    objects = [each for each in cold_start.cluster() if each["metadata"]["name"] != "virt-launcher-db"]
    objects.append(builders.vm_pod("db", claims=["disk"], **pod))
    assert line in explain(created(), objects).out
    assert explained(created(), objects)["decision"] == decision


def test_a_pod_that_has_ended_is_not_shown() -> None:
    """A finished pod uses no volume."""
    ended = builders.vm_pod("old", node="node-a", phase="Succeeded", claims=["disk"])
    assert "virt-launcher-old" not in explain(created(), [*cold_start.cluster(), ended]).out


def test_a_volume_without_vms_is_left_unchanged() -> None:
    """Without VMs and tickets, the text shows what exists, and the exit code is 1."""
    ran = explain(created(), [*cold_start.nodes("node-a"), *cold_start.volume()])
    assert ran.code == 1
    assert "    =   no node                NoConsumer: claim vms/disk: no known virt-launcher pod" in ran.out
    assert "  Outcome:  unchanged\n  Because:  NoConsumer: " in ran.out


def test_a_claim_that_is_gone_is_shown_by_its_name() -> None:
    """The PersistentVolume still names the claim."""
    objects = [each for each in cold_start.cluster() if each["kind"] != "PersistentVolumeClaim"]
    assert "PersistentVolumeClaim  vms/disk, could not be read or does not exist\n" in explain(created(), objects).out


def test_the_clusters_mode_counts_for_its_vms() -> None:
    """With mode off, the value `true` asks for nothing."""
    found = explained(created(), cold_start.cluster(), mode=Mode.OFF)
    (vm,) = found["volume"]["claims"][0]["vms"]
    assert (found["decision"], found["reason"], vm["mode"]) == ("unchanged", "ConsumerNotOptedIn", None)


def test_for_a_pod_with_a_node_a_hint_names_the_volume() -> None:
    """The pod is left unchanged.

    The text still shows the objects of the volume, and the hint says what to explain instead.
    """
    found = explained(created(nodeName="node-a"), cold_start.cluster())
    assert (found["reason"], found["hints"]) == (
        "NodeAlreadySet",
        [_RUNNING_HINTS[Entry.SHARE_MANAGER]],
    )
    assert [consumer["node"] for consumer in found["volume"]["consumers"]] == ["node-b"]


def test_a_candidate_that_longhorn_avoids_is_not_feasible() -> None:
    """The result is that of the decision: Longhorn's own preference against the node counts."""
    field = {"key": "metadata.name", "operator": "NotIn", "values": ["node-b"]}
    shunned = {"weight": 100, "preference": {"matchFields": [field]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [shunned]}}
    found = explained(created(affinity=affinity), cold_start.cluster())
    assert (found["decision"], found["nodes"][0]["reason"]) == ("unchanged", "NodeDelinquent")
    assert found["affinity"]["before"] == found["affinity"]["after"] == affinity


@pytest.mark.parametrize("output", ["text", "yaml", "json"])
@pytest.mark.parametrize("node", [{}, {"nodeName": "node-a"}], ids=["created", "running"])
@pytest.mark.parametrize("reviewed", [False, True], ids=["pod", "review"])
def test_the_passphrase_of_an_encrypted_volume_is_never_printed(
    output: str, node: dict[str, str], *, reviewed: bool
) -> None:
    """The pod has the passphrase; explain prints only its affinity and the webhook's annotation."""
    pod = encrypted(**node)
    ran = explain(
        a_review(pod, namespace="longhorn-system") if reviewed else pod,
        [*cold_start.cluster(), pod],
        output=output,
    )
    assert "share-manager-pvc-disk" in ran.out
    assert PASSPHRASE not in ran.out + ran.err
    assert "PASSPHRASE" not in ran.out + ran.err


def test_an_error_does_not_print_the_passphrase() -> None:
    """The error about a pod that can't be read has the name and the type of the field only."""
    pod = encrypted()
    pod["spec"]["nodeSelector"] = pod["spec"]["containers"][0]["env"]
    with pytest.raises(BadDocument) as refused:
        explain(pod, cold_start.cluster())
    assert "spec.nodeSelector" in str(refused.value)
    assert PASSPHRASE not in str(refused.value)


def test_an_object_that_is_not_a_pod_is_refused_by_core() -> None:
    """The entry is chosen for any object; the error is the one that the webhook gives."""
    review = a_review({"metadata": {"labels": {"longhorn.io/component": "share-manager"}}, "spec": 7})
    with pytest.raises(BadDocument, match="spec"):
        explain(json.loads(json.dumps(review)), cold_start.cluster())
