"""The template of a VM's pod: all that the next start is decided by, and none for a pod that asks already."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from support.fakes.watching import RESOURCES
from support.objects import builders
from support.strategies.strategies import Scenario, scenarios

from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.pod import Pod
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.view import Kind
from webhook.kube.client.wire import Decoders
from webhook.kube.records.templates import next_pod
from webhook.kube.records.virt_launchers import VirtLauncher

RESOURCE: Final = RESOURCES[Kind.VIRT_LAUNCHER_POD]
READ: Final = [each for each in IncomingPod.__struct_fields__ if each != "pod"]
Object = dict[str, Any]


def record_of(described: Object) -> VirtLauncher:
    """The record of a pod in the cache."""
    wire: Any = Decoders(RESOURCE.wire).object(json.dumps(described).encode())
    record = RESOURCE.transform(wire).virt_launcher
    assert isinstance(record, VirtLauncher)
    return record


def reads(pod: Pod) -> Object:
    """What plugins and the evidence read of a pod that starts."""
    incoming = IncomingPod.of(pod, "vms")
    volumes = [volume for volume in pod.spec.volumes or () if volume.persistent_volume_claim or volume.ephemeral]
    own = (pod.spec.scheduling_gates, pod.spec.resource_claims, volumes)
    return {**{name: getattr(incoming, name) for name in READ}, "own": own}


@given(scenarios())
def test_a_template_has_all_that_the_next_start_is_decided_by(scenario: Scenario) -> None:
    """Whatever pod it is made of: labels, requests, ports, selectors, affinity, tolerations, spread and claims."""
    described = json.loads(json.dumps(scenario.pod))
    described["metadata"] = {
        **(described.get("metadata") or {}),
        "name": "a", "namespace": "vms", "annotations": {}, "labels": {LABEL_APP: VIRT_LAUNCHER},
    }  # fmt: skip
    described["spec"] = {**(described.get("spec") or {}), "volumes": [builders.claim_volume("vm-state", "c0")]}
    found = next_pod("vms/a", record_of(described))
    assert found is not None
    assert reads(found) == reads(msgspec.convert(described, Pod))


def test_vms_of_one_kind_have_one_template() -> None:
    """What names the VM is not in the part that they share."""
    one, other = (record_of(builders.vm_pod(name, opt_in=None, claims=[f"{name}-root"])) for name in ("a", "b"))
    assert one.template is not None
    assert other.template is not None
    assert one.template[1] is other.template[1]
    assert one.template[0] != other.template[0]


@pytest.mark.parametrize(
    "parts", [{"opt_in": "true"}, {"opt_in": "preferred"}, {"opt_in": None, "claims": []}], ids=str
)
def test_a_pod_that_can_be_no_candidate_has_none(parts: Object) -> None:
    """It costs nothing."""
    record = record_of(builders.vm_pod("a", **{"claims": ["c0"], **parts}))
    assert record.template is None
    assert next_pod("vms/virt-launcher-a", record) is None


@pytest.mark.parametrize(
    "parts", [{"tolerations": "x"}, {"resourceClaims": 5}, {"affinity": {"podAffinity": []}}], ids=str
)
def test_a_part_of_a_wrong_type_is_no_pod(parts: Object) -> None:
    """The record is there; nothing is decided by it."""
    record = record_of(builders.vm_pod("a", opt_in=None, claims=["c0"], **parts))
    assert record.claims == ("vms/c0",)
    assert next_pod("vms/virt-launcher-a", record) is None


@pytest.mark.parametrize("name", ["tolerations", "topologySpreadConstraints", "resourceClaims", "affinity"])
def test_null_is_absent(name: str) -> None:
    """As in Go's JSON."""
    found = next_pod("vms/a", record_of(builders.vm_pod("a", opt_in=None, claims=["c0"], **{name: None})))
    assert found is not None
    spec = found.spec
    assert [spec.tolerations, spec.topology_spread_constraints, spec.resource_claims, spec.node_affinity] == [None] * 4


_TERM: Final = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_REQUESTS: Final = {"requests": {"cpu": "1", "memory": "1Gi"}}
PARTS: Final[Object] = {
    "containers": [{"name": "compute", "resources": _REQUESTS, "ports": [{"hostPort": 80, "protocol": "TCP"}]}],
    "initContainers": [{"name": "sidecar", "restartPolicy": "Always", "resources": _REQUESTS}],
    "overhead": {"memory": "200Mi"},
    "resources": {"requests": {"cpu": "8"}},
    "nodeSelector": {"zone": "a", "kubevirt.io/schedulable": "true"},
    "affinity": {
        **builders.node_affinity(required=[builders.on_node("node-a")], preferred={"node-b": 5}),
        "podAffinity": {_REQUIRED: [_TERM]},
        "podAntiAffinity": {_REQUIRED: [_TERM]},
    },
    "tolerations": [{"key": "reserved", "operator": "Exists"}],
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "schedulingGates": [{"name": "wait"}],
    "resourceClaims": [{"name": "gpu"}],
}


@pytest.mark.parametrize("name", PARTS)
def test_each_part_of_the_spec_is_there(name: str) -> None:
    """Alone, so that no other part hides it."""
    described = builders.vm_pod("a", opt_in=None, claims=["c0"], labels={"app": "db"}, **{name: PARTS[name]})
    found = next_pod("vms/virt-launcher-a", record_of(described))
    assert found is not None
    whole, without = (msgspec.convert(each, Pod) for each in (described, builders.vm_pod("a", claims=["c0"])))
    assert reads(found) == reads(whole) != reads(without)
