"""What stays of an object: all that the program reads, and nothing else."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec import convert
from support.drivers.explaining import OPT_IN, a_vm, the_cluster
from support.objects import builders

from webhook.core.api.meta import ConfigMap, Namespace
from webhook.core.api.pod import Pod
from webhook.core.observe.reunite_messages import ReuniteEvent
from webhook.explain.derive.notes import _NOT_DERIVED
from webhook.explain.derive.virt_launcher import derive_virt_launcher
from webhook.objects.api.kubevirt import VirtualMachine
from webhook.objects.api.storage import PersistentVolume, Setting, StorageClass
from webhook.objects.api.webhooks import WebhookConfiguration
from webhook.objects.kept import as_json

HIDDEN: Final = "hidden"
Object = dict[str, Any]


def kept(value: Object, type_: type[Any]) -> Any:
    """What stays of an object."""
    return as_json(convert(value, type_))


def at(path: tuple[str, ...], leaf: Any) -> Object:
    """An object with one field; `disks` and other plurals of devices are lists."""
    inner = leaf
    for step in reversed(path):
        inner = {step: [inner] if step in ("disks", "interfaces") else inner}
    return dict(inner)


LISTS: Final = ("features", "gpus", "hostDevices")


@pytest.mark.parametrize("path", [path for path, _ in _NOT_DERIVED], ids=".".join)
def test_a_note_on_a_vm_is_the_same_of_a_bundle(path: tuple[str, ...]) -> None:
    """For each part of a VM that is not derived, the note stays; what the part says does not."""
    whole = {"name": HIDDEN, "session": HIDDEN}
    flags = ("dedicatedCpuPlacement", "reservation")
    leaf: Any = True if path[-1] in flags else [whole] if path[-1] in LISTS else whole
    vm = a_vm("disk")
    vm["spec"]["template"]["spec"] |= at(path, leaf)
    left = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", **kept(vm, VirtualMachine)}
    before, after = (derive_virt_launcher(convert(each, VirtualMachine), the_cluster(), "vms") for each in (vm, left))
    assert (after.notes, after.pod) == (before.notes, before.pod)
    assert len(after.notes) == 2
    assert HIDDEN not in str(left)


def test_the_pod_of_a_vm_is_derived_alike() -> None:
    """Requests, selectors, tolerations, affinity, claims and the opt-in are in a bundle; cloud-init is not."""
    vm = a_vm("disk")
    vm["spec"]["template"]["metadata"]["annotations"]["hooks.kubevirt.io/hookSidecars"] = HIDDEN
    vm["spec"]["template"]["metadata"]["annotations"]["vendor/password"] = HIDDEN
    spec = vm["spec"]["template"]["spec"]
    spec["volumes"].append({"name": "init", "cloudInitNoCloud": {"userData": HIDDEN}})
    spec |= {
        "accessCredentials": [{"sshPublicKey": HIDDEN}],
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "affinity": builders.node_affinity(required=[builders.on_node("node-a")]),
        "domain": {
            "cpu": {"model": "Haswell", "cores": 2, "sockets": 2, "threads": 1, "dedicatedCpuPlacement": True},
            "machine": {"type": "q35"},
            "memory": {"guest": "2Gi", "hugepages": {"pageSize": "2Mi"}},
            "resources": {"requests": {"cpu": "3"}, "limits": {"memory": "4Gi"}},
            "firmware": {"serial": HIDDEN, "bootloader": {"efi": {"persistent": False}}},
            "devices": {"tpm": {"persistent": False}},
        },
    }
    left = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", **kept(vm, VirtualMachine)}
    before, after = (derive_virt_launcher(convert(each, VirtualMachine), the_cluster(), "vms") for each in (vm, left))
    assert after.notes == before.notes
    assert after.pod["spec"] == before.pod["spec"]
    assert after.pod["metadata"]["annotations"][OPT_IN] == "true"
    assert HIDDEN not in str(left)


def test_the_environment_and_the_words_of_a_pod_are_left_out() -> None:
    """Of a share-manager's arguments the volume and its data engine stay; of a pod's conditions one message."""
    pod = builders.share_manager_pod("root", nodeName="node-a", data_engine="v2")
    container = pod["spec"]["containers"][0]
    container["env"] = [{"name": "CRYPTOKEYVALUE", "value": HIDDEN}]
    container["args"] += ["--mount", HIDDEN]
    container["command"] = [HIDDEN]
    pod["spec"]["initContainers"] = [{"name": "init", "args": ["--volume", HIDDEN]}]
    pod["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"metadata": {"a": HIDDEN}}}}]
    pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": HIDDEN, OPT_IN: "true"}
    pod["status"]["conditions"] = [
        {"type": "Ready", "status": "False", "message": HIDDEN},
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"},
    ]
    left = kept(pod, Pod)
    assert HIDDEN not in str(left)
    assert left["spec"]["containers"][0]["args"] == ["--volume", "root", "--data-engine", "v2"]
    assert left["spec"]["volumes"] == [{"name": "scratch", "ephemeral": {}}]
    assert left["metadata"]["annotations"] == {OPT_IN: "true"}
    assert [each.get("message") for each in left["status"]["conditions"]] == [None, "0/3 nodes"]


def test_an_empty_mapping_of_annotations_stays() -> None:
    """Whether there is one decides the path of a patch."""
    pod = builders.virt_launcher_pod(claims=["disk"])
    for found in ({}, {"vendor/password": HIDDEN}):
        assert kept(pod | {"metadata": {"name": "p", "annotations": found}}, Pod)["metadata"]["annotations"] == {}
    assert "annotations" not in kept(pod | {"metadata": {"name": "p"}}, Pod)["metadata"]


def named(name: str, **fields: Any) -> Object:
    """An object of this name."""
    return {"metadata": {"name": name}, **fields}


NARROWED: Final[dict[str, tuple[type[Any], Object, Object | None]]] = {
    "attributes of a volume": (
        PersistentVolume,
        named("pv", spec={"storageClassName": "c", "csi": {"volumeAttributes": {"migratable": "true", "key": HIDDEN}}}),
        named("pv", spec={"storageClassName": "c", "csi": {"volumeAttributes": {"migratable": "true"}}}),
    ),
    "a volume without a driver": (PersistentVolume, named("pv", spec={}), named("pv", spec={})),
    "parameters of a class": (
        StorageClass,
        named("c", parameters={"shareManagerNodeSelector": "a:b", "password": HIDDEN}),
        named("c", parameters={"shareManagerNodeSelector": "a:b"}),
    ),
    "a class without parameters": (StorageClass, named("c"), named("c")),
    "the label of a Namespace": (
        Namespace,
        {"metadata": {"name": "vms", "labels": {"kubevirt-scheduler/co-schedule": "true", "team": HIDDEN}}},
        {"metadata": {"name": "vms", "labels": {"kubevirt-scheduler/co-schedule": "true"}}},
    ),
    "a setting that is read": (
        Setting,
        named("taint-toleration", value="a=b"),
        named("taint-toleration", value="a=b"),
    ),
    "another setting": (Setting, named("backup-target-credential-secret", value=HIDDEN), None),
    "the webhook": (
        WebhookConfiguration,
        named("kubevirt-coschedule", webhooks=[{"clientConfig": {"caBundle": HIDDEN, "service": {"namespace": "x"}}}]),
        named("kubevirt-coschedule", webhooks=[{"clientConfig": {"service": {"namespace": "x"}}}]),
    ),
    "another webhook": (WebhookConfiguration, named("other"), None),
    "another program's Event": (ReuniteEvent, named("e", reason="Started", message=HIDDEN), None),
}


@pytest.mark.parametrize(("type_", "value", "left"), NARROWED.values(), ids=NARROWED)
def test_what_a_type_takes_whole_is_narrowed(type_: type[Any], value: Object, left: Object | None) -> None:
    """To the keys that a rule reads, and to the objects that have a name that a rule reads."""
    assert kept(value, type_) == left


def test_of_a_config_map_only_the_metadata_stays() -> None:
    """cluster-autoscaler's status names node groups, and its annotation changes every 10 s."""
    status = builders.cluster_autoscaler_status(status=HIDDEN)
    status["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/last-updated": HIDDEN}
    left = kept({**status, "binaryData": {"b": HIDDEN}}, ConfigMap)
    assert left == {"metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system", "annotations": {}}}
