"""The text of an Explanation, as an operator reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.drivers.explaining import CLUSTER, a_pod, a_vm, as_yaml, explained, run

REQUIRED_TEXT = """\
VirtualMachine vms/db (stdin:1)
  Cluster: cluster.yaml
  Note: derived from the object alone. The pod lacks the memory that KubeVirt adds for itself, and what the \
KubeVirt resource sets for all VMs: default CPU model, machine type, architecture, node placement, CPU allocation ratio

Opt-in:
  Annotation:      kubevirt-scheduler/co-schedule: "true"
  Mode:            required
  Cluster's mode:  required

Claims (1):
  root
    ->  PersistentVolumeClaim  Bound, ReadWriteMany
    ->  PersistentVolume       pv-root
    ->  Longhorn volume        vol-root
    ->  ShareManager           running, ownerID node-c
    ->  Pod                    share-manager-vol-root, Running, on node-b
    =   node node-b            ShareManagerPod: pod share-manager-vol-root is on node node-b, which outweighs \
ShareManager ownerID node-c

Nodes (3):
  NODE    CANDIDATE  FEASIBLE  REASON
  node-b  yes        yes       NodeFeasible
  node-a  -          yes       NodeFeasible
  node-c  -          no        NodeCordoned: node node-c is cordoned

Decision:
  Outcome:     required on node-b
  Because:     ShareManagerPod: claim root: pod share-manager-vol-root is on node node-b, which outweighs \
ShareManager ownerID node-c
  Preferred:   node-b (weight 100)
  Annotation:  kubevirt-scheduler/decision: required on node-b: ShareManagerPod: claim root: pod \
share-manager-vol-root is on node node-b, which outweighs ShareManager ownerID node-c

Affinity:
  --- before
  +++ after
  @@ -1,7 +1,20 @@
   affinity:
     nodeAffinity:
       requiredDuringSchedulingIgnoredDuringExecution:
         nodeSelectorTerms:
         - matchExpressions:
           - key: node-labeller.kubevirt.io/obsolete-host-model
             operator: DoesNotExist
  +        matchFields:
  +        - key: metadata.name
  +          operator: In
  +          values:
  +          - node-b
  +    preferredDuringSchedulingIgnoredDuringExecution:
  +    - weight: 100
  +      preference:
  +        matchFields:
  +        - key: metadata.name
  +          operator: In
  +          values:
  +          - node-b
"""


def test_a_pinned_vm_is_shown_in_full() -> None:
    """The text has the opt-in, each claim's objects, each node, the decision, and the affinity as a diff."""
    assert run(as_yaml(a_vm("root"))).out == REQUIRED_TEXT


CHAIN_ROWS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "pod not scheduled": (
        a_pod("hint"),
        [
            "  hint\n    ->  PersistentVolumeClaim  no phase, ReadWriteMany\n",
            "    ->  ShareManager           no state, ownerID node-a\n",
            "    ->  Pod                    share-manager-vol-hint, no phase, not scheduled\n",
            "    =   node node-a (a hint)   ShareManagerUnscheduled: the share-manager pod of volume vol-hint is not",
        ],
    ),
    "pod terminating": (
        a_pod("stopped"),
        [
            "    ->  ShareManager           no state, ownerID none\n",
            "    ->  Pod                    share-manager-vol-stopped, Failed, terminating, on node-a\n",
            "    =   no node                ShareManagerNoNode: ",
        ],
    ),
    "not bound": (
        a_pod("new"),
        [
            "    ->  PersistentVolumeClaim  Pending, no access mode\n    ->  PersistentVolume       pv-new\n",
            "    =   no node                ClaimNotBound: it is not bound to a PersistentVolume (phase Pending)\n",
        ],
    ),
    "no share-manager": (
        a_pod("fast"),
        [
            "    ->  Longhorn volume        vol-fast\n",
            "    =   no node                ClaimNotReadWriteMany: its access modes are ReadWriteOnce; ",
        ],
    ),
    "a claim without anything": (a_pod("bare"), ["  bare\n    =   no node                ClaimNotBound: "]),
    "not found": (a_pod("absent"), ["  absent\n    =   no node                ClaimNotFound: "]),
    "no claims": (a_pod(), ["Claims:\n  none\n"]),
}


@pytest.mark.parametrize(("pod", "fragments"), CHAIN_ROWS.values(), ids=CHAIN_ROWS)
def test_a_chain_is_shown_as_far_as_it_goes(pod: dict[str, Any], fragments: list[str]) -> None:
    """Each existing object has a line, and the finding is the last line."""
    out = run(as_yaml(pod)).out
    for fragment in fragments:
        assert fragment in out


def test_hints_are_at_the_top() -> None:
    """A hint on a likely mistake comes directly after the cluster, and the notes come after it."""
    vm = a_vm("root")
    vm["metadata"]["annotations"] = vm["spec"]["template"].pop("metadata")["annotations"]
    lines = run(as_yaml(vm)).out.splitlines()
    assert lines[1] == "  Cluster: cluster.yaml"
    assert lines[2].startswith('  Hint: kubevirt-scheduler/co-schedule: "true" is in metadata.annotations, ')
    assert lines[3].startswith("  Note: ")


def test_a_preference_says_why_it_is_not_required() -> None:
    """The reason of a preference is the reason against a required affinity."""
    out = run(as_yaml(a_pod("hint"))).out
    assert "  Outcome:       preferred on node-a\n  Not required:  ShareManagerUnscheduled: claim hint: " in out


def _nodes(count: int) -> str:
    return CLUSTER + "".join(
        f"---\n{{apiVersion: v1, kind: Node, metadata: {{name: extra-{i:02}}}}}\n" for i in range(count)
    )


def test_up_to_forty_nodes_are_all_listed() -> None:
    """The table has a row for each node if it fits on a screen."""
    out = run(as_yaml(a_pod("root")), cluster=_nodes(37)).out
    assert (
        "Nodes (40):\n  NODE      CANDIDATE  FEASIBLE  REASON\n  node-b    yes        yes       NodeFeasible\n" in out
    )
    assert "  extra-36  -          no        NodeNotReady: node extra-36 is not Ready\n" in out
    assert "others" not in out


def test_more_than_forty_nodes_are_counted_by_reason() -> None:
    """The candidates are listed, and the others are counted, the most frequent reason first."""
    out = run(as_yaml(a_pod("root")), cluster=_nodes(38)).out
    assert (
        "Nodes (41):\n"
        "  NODE    CANDIDATE  FEASIBLE  REASON\n"
        "  node-b  yes        yes       NodeFeasible\n"
        "  others, by reason:\n"
        "      38  NodeNotReady\n"
        "       1  NodeFeasible\n"
        "       1  NodeCordoned\n"
        "\n"
    ) in out
    assert len(explained(a_pod("root"), cluster=_nodes(38))["nodes"]) == 41


def test_without_a_candidate_more_than_forty_nodes_are_only_counted() -> None:
    """There is no table without rows."""
    out = run(as_yaml(a_pod("absent")), cluster=_nodes(38)).out
    assert "Nodes (41):\n  no candidate; by reason:\n      38  NodeNotReady\n" in out
    assert "CANDIDATE" not in out


def test_a_cluster_without_nodes_shows_none() -> None:
    """The section of the nodes is shown even without nodes."""
    assert "\nNodes:\n  none\n" in run(as_yaml(a_pod("absent")), cluster="").out


COLOR_ROWS = {
    "required": (a_pod("root"), "\x1b[32mOutcome:     required on node-b\x1b[0m"),
    "preferred": (a_pod("hint"), "\x1b[33mOutcome:       preferred on node-a\x1b[0m"),
    "an added line": (a_pod("root"), "  \x1b[32m+affinity:\x1b[0m\n"),
}


@pytest.mark.parametrize(("pod", "painted"), COLOR_ROWS.values(), ids=COLOR_ROWS)
def test_colors_mark_the_outcome_and_the_diff(pod: dict[str, Any], painted: str) -> None:
    """Colors are only in output that asked for them."""
    assert painted in run(as_yaml(pod), color=True).out
    assert "\x1b" not in run(as_yaml(pod)).out


def test_an_unchanged_pod_has_no_color() -> None:
    """The outcome `unchanged` has no color."""
    assert "\x1b" not in run(as_yaml(a_pod("root", opt_in=None)), color=True).out


def test_control_characters_are_shown_not_sent() -> None:
    """A name from a file can't drive the terminal."""
    pod = a_pod("\x1b[31mred\n")
    out = run(json.dumps(pod), color=True).out
    assert "\\x1b[31mred\\x0a" in out
    assert "\x1b[31mred" not in out
    pod["metadata"]["name"] = "\x9b31mred"
    assert run(json.dumps(pod)).out.startswith("Pod vms/\\x9b31mred (stdin:1)\n")
