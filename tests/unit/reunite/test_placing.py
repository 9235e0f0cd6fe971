"""Whether the node of the share-managers takes the VM: what is against it, and what its next start can do."""

from __future__ import annotations

from typing import Any

import pytest
from support.objects import builders
from support.objects.fleets import served
from support.scenarios.reunite_runs import Object, moved, vmi, went

HOME = "node-a"


def told(*more: Object) -> str:
    """What a run tells of VM `moved`, with these objects in the cluster."""
    (report,) = went(moved(*more)).reports
    return report.message


def home(**changes: Any) -> Object:
    """The node of the share-managers."""
    return builders.node(HOME, **changes)


def unlabelled() -> Object:
    """The same without the label that a migration names."""
    node = home()
    del node["metadata"]["labels"]["kubernetes.io/hostname"]
    return node


def twin() -> Object:
    """Another node that has the label of the node of the share-managers."""
    node = builders.node("node-c")
    node["metadata"]["labels"]["kubernetes.io/hostname"] = home()["metadata"]["labels"]["kubernetes.io/hostname"]
    return node


def bare(name: str) -> Object:
    """A node that does not say what it has for pods."""
    node = builders.node(name)
    del node["status"]["allocatable"]
    return node


def ruled(**spec: Any) -> Object:
    """The VMI with a rule between pods."""
    made = vmi()
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    made["spec"] = {"affinity": rule, **spec}
    return made


def prioritized() -> Object:
    """The VMI with a priority."""
    return {**vmi(), "spec": {"priorityClassName": "gold"}}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param([home()], "would create migration", id="nothing"),
        pytest.param([home(ready="Unknown")], "NotPlaceable: node node-a is not Ready", id="not Ready"),
        pytest.param([home(cordoned=True)], "NotPlaceable: node node-a is cordoned", id="cordoned"),
        pytest.param(
            [home(taints=["kured:PreferNoSchedule"])], "has the taint kured:PreferNoSchedule, so", id="a soft taint"
        ),
        pytest.param(
            [home(taints=["medik8s.io/drain:NoSchedule"])], "has the taint medik8s.io/drain", id="maintenance"
        ),
        pytest.param(
            [home(allocatable={"cpu": "0", "memory": "0", "pods": "0"})], "NotPlaceable: node node-a has too", id="full"
        ),
        pytest.param(
            [bare(name) for name in ("node-a", "node-b", "node-c")],
            "the pods and resources of the nodes are not known",
            id="no node says what it has",
        ),
        pytest.param([unlabelled()], "node node-a has no label kubernetes.io/hostname of", id="no hostname"),
        pytest.param([twin()], "node node-a has no label kubernetes.io/hostname of its own", id="two of one hostname"),
        pytest.param(
            [builders.share_manager("page", state="error", ownerID=HOME)],
            "the share-manager of claim page is error",
            id="the share-manager has failed",
        ),
        pytest.param(
            [builders.share_manager("page", state="stopping", ownerID=HOME)],
            "the share-manager of claim page is stopping",
            id="the share-manager stops",
        ),
        pytest.param([ruled()], "would create migration", id="a rule between pods: kube-scheduler judges"),
        pytest.param(
            [ruled(priorityClassName="gold")],
            "only kube-scheduler can tell, and it may evict pods for gold",
            id="a rule between pods, and a priority",
        ),
        pytest.param([prioritized()], "would create migration", id="a priority"),
    ],
)
def test_a_home_takes_the_vm(more: list[Object], words: str) -> None:
    """Less knowledge, and each doubt, say no."""
    assert words in told(*more)


def test_a_share_manager_that_ends_again_and_again_is_no_home() -> None:
    """Its pod is not Ready."""
    _, pod = served("page", HOME)
    pod["status"]["conditions"].append({"type": "Ready", "status": "False"})
    assert "the pod of the share-manager of claim page is not Ready" in told(pod)


def test_the_next_start_can_do_what_a_migration_cannot() -> None:
    """The source node adds its CPU to the target only."""
    source, target = builders.node("node-b"), home()
    source["metadata"]["labels"]["host-model-cpu.node.kubevirt.io/New"] = "true"
    assert told(source, target).endswith(
        "cpu-model-migration.node.kubevirt.io/New=true of the pod's nodeSelector; its next start can bring it there: "
        "virtctl restart moved -n vms; if the VM's runStrategy is Once: kubectl delete virtualmachineinstance moved -n "
        "vms"
    )
    assert "next start" not in told(home(ready="Unknown"))
