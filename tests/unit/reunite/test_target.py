"""The target of a migration and the pod of the next start, as KubeVirt makes them of the VMI and the source node."""

from typing import Any

import pytest
from msgspec import convert
from support.objects import builders
from support.objects.fleets import EARLY, disk, launcher, served, the_row
from support.objects.reunite_vms import vm

from webhook.core.api.affinity import Affinity
from webhook.core.api.meta import ObjectMeta
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod, Toleration
from webhook.objects.kubevirt import Domain
from webhook.reunite.home import start_pod, target_pod
from webhook.reunite.vm import VM

OWN = {"kubevirt.io/schedulable": "true"}
MODEL = {"cpu-model-migration.node.kubevirt.io/Cascadelake": "true"}
FEATURE = {"cpu-feature.node.kubevirt.io/avx512vnni": "true"}
VENDOR = {"cpu-vendor.node.kubevirt.io/Intel": "true"}
SOURCE = Node(
    metadata=ObjectMeta(
        name="a",
        labels={
            "host-model-cpu.node.kubevirt.io/Cascadelake": "true",
            "host-model-required-features.node.kubevirt.io/avx512vnni": "true",
            "cpu-model-migration.node.kubevirt.io/Broadwell": "true",
            **VENDOR,
        },
    )
)
HOST = {"kubernetes.io/hostname": "a"}
NAMED = convert({"cpu": {"model": "Broadwell"}}, Domain)


def pod(selector: dict[str, str], *, target: bool = False, **spec: Any) -> Pod:
    """The pod of a VM."""
    labels = {"kubevirt.io/migrationJobUID": "m"} if target else {}
    return convert({"metadata": {"name": "p", "labels": labels}, "spec": {"nodeSelector": selector, **spec}}, Pod)


def of(pod_: Pod, **spec: Any) -> tuple[VM, Pod]:
    """A VM with this pod, whose VMI says this."""
    return vm(pod=pod_, **spec), pod_


@pytest.mark.parametrize(
    ("found", "target", "start"),
    [
        pytest.param(of(pod(OWN)), OWN | MODEL | FEATURE | VENDOR, OWN, id="host-model, after a start"),
        pytest.param(
            of(pod(OWN | MODEL | HOST, target=True)), OWN | MODEL | VENDOR, OWN, id="host-model, after a migration"
        ),
        pytest.param(of(pod(OWN), domain=NAMED), OWN | VENDOR, OWN, id="a named model"),
        pytest.param(
            of(pod(OWN | FEATURE, target=True), domain=NAMED),
            OWN | FEATURE | VENDOR,
            OWN | FEATURE,
            id="a named model with a feature",
        ),
        pytest.param(
            of(pod(OWN | VENDOR | MODEL, target=True)), OWN | VENDOR | MODEL, OWN, id="the vendor is in it already"
        ),
        pytest.param(
            of(pod(OWN | {"disk": "ssd"}), node_selector={"disk": "nvme"}, domain=NAMED),
            OWN | VENDOR | {"disk": "nvme"},
            OWN | {"disk": "nvme"},
            id="the VMI's selector was changed live",
        ),
    ],
)
def test_what_the_pods_ask_of_a_node(found: tuple[VM, Pod], target: dict[str, str], start: dict[str, str]) -> None:
    """The source node adds its CPU to the target. A start has nothing that a migration added."""
    assert target_pod(*found, SOURCE).spec.node_selector == target
    assert start_pod(*found).spec.node_selector == start


def test_a_source_that_was_not_read_adds_nothing() -> None:
    """Kube-scheduler then judges."""
    for source in (None, Node(metadata=ObjectMeta(name="a"))):
        assert target_pod(*of(pod(OWN)), source).spec.node_selector == OWN


def test_affinity_and_tolerations_are_those_of_the_vmi() -> None:
    """Beside what KubeVirt and Kubernetes add to each pod."""
    agent = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    gone, wanted = {"key": "gone", "operator": "Exists"}, Toleration(key="vms", operator="Exists")
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    affinity = convert(required, Affinity)
    found = of(pod(OWN, tolerations=[agent, gone]), affinity=affinity, tolerations=[wanted])
    made = target_pod(*found, None).spec
    assert made.tolerations == [wanted, convert(agent, Toleration)]
    assert made.affinity == affinity


def test_what_a_migration_added_excludes_no_node_from_the_next_start() -> None:
    """`status` and `reunite` agree: neither says that the VM can't run on the node of its share-manager."""
    labels = {"kubevirt.io/migrationJobUID": "m"}
    moved = launcher("root", nodeName="node-a", labels=labels, nodeSelector=OWN | MODEL | VENDOR | HOST)
    found = the_row(
        moved, objects=[*disk("root"), *served("root", "node-b", EARLY), builders.node("node-b", labels=OWN)]
    )
    assert found.remedy
    assert found.remedy == "live-migrate the VM to node node-b, if it can run there"
