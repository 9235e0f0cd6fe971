"""What stays of an object: all that the program reads, and nothing else."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec import convert
from support.drivers.explaining import OPT_IN, a_vm
from support.objects import builders

from webhook.bundle import as_json
from webhook.core.api.meta import ConfigMap, Namespace
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.observe.events import ReuniteEvent
from webhook.objects.installed import ServePod, Setting, WebhookConfiguration
from webhook.objects.kubevirt import RULES, VirtualMachine, rules_of

HIDDEN: Final = "hidden"
Object = dict[str, Any]


def kept(value: Object, type_: type[Any]) -> Any:
    """What stays of an object."""
    return as_json(convert(value, type_))


def at(path: list[str], leaf: Any) -> Object:
    """An object with one field; `disks` and other plurals of devices are lists."""
    inner = leaf
    for step in reversed(path):
        inner = {step: [inner] if step in ("disks", "interfaces") else inner}
    return dict(inner)


LEAVES: Final[dict[str, Any]] = {
    **{key: [{"session": HIDDEN}] for key in ("features", "gpus", "hostDevices", "resourceClaims")},
    **dict.fromkeys(("dedicatedCpuPlacement", "reservation", "persistent"), True),
    **dict.fromkeys(("architecture", "model", "type"), "shown"),
    "affinity": {"nodeAffinity": {}, "session": HIDDEN},
    "tolerations": [{"key": "shown", "session": HIDDEN}],
    "topologySpreadConstraints": [{"topologyKey": "shown", "session": HIDDEN}],
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_of_a_vm_is_named_alike_of_a_bundle(rule: str) -> None:
    """What the rule says is in no bundle where only its name counts."""
    path = rule.split(".")
    leaf: Any = LEAVES.get(path[-1], {"name": HIDDEN, "session": HIDDEN})
    vm = a_vm("disk")
    vm["spec"]["template"]["spec"] |= at(path, leaf)
    left = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", **kept(vm, VirtualMachine)}
    before, after = (rules_of(convert(each, VirtualMachine)) for each in (vm, left))
    assert after == before
    assert len(after) == 2
    assert HIDDEN not in str(left)


def test_cloud_init_and_keys_of_a_vm_are_left_out() -> None:
    """Selectors, claims and the opt-in stay."""
    vm = a_vm("disk")
    vm["spec"]["template"]["metadata"]["annotations"]["hooks.kubevirt.io/hookSidecars"] = HIDDEN
    vm["spec"]["template"]["metadata"]["annotations"]["vendor/password"] = HIDDEN
    spec = vm["spec"]["template"]["spec"]
    spec["volumes"].append({"name": "init", "cloudInitNoCloud": {"userData": HIDDEN}})
    spec |= {
        "accessCredentials": [{"sshPublicKey": HIDDEN}],
        "nodeSelector": {"zone": "a"},
        "domain": {"firmware": {"serial": HIDDEN}},
    }
    left = kept(vm, VirtualMachine)
    template = left["spec"]["template"]
    assert template["spec"]["nodeSelector"] == {"zone": "a"}
    assert template["metadata"]["annotations"][OPT_IN] == "true"
    assert HIDDEN not in str(left)
    assert "hook sidecars (annotation hooks.kubevirt.io/hookSidecars)" in rules_of(convert(left, VirtualMachine))


def test_of_a_pod_of_the_webhook_the_options_that_decide_stay() -> None:
    """And nothing else of its arguments and its environment."""
    container = {
        "name": "webhook",
        "args": ["serve", "--mode=preferred", "--tls-private-key-file", HIDDEN],
        "env": [
            {"name": "TOKEN", "value": HIDDEN},
            {"name": "KUBEVIRT_COSCHEDULE_AUDIT", "value": "on"},
            {"name": "KUBEVIRT_COSCHEDULE_OPT_IN_ALL", "valueFrom": {"secretKeyRef": {"name": HIDDEN}}},
        ],
    }
    other = {"name": "proxy", "args": [HIDDEN], "env": [{"name": "KUBEVIRT_COSCHEDULE_MODE", "value": HIDDEN}]}
    pod = {"metadata": {"name": "w"}, "spec": {"containers": [container, other]}}
    left = kept(pod, ServePod)
    assert HIDDEN not in str(left)
    assert left["spec"]["containers"] == [
        {
            "name": "webhook",
            "args": ["serve", "--mode=preferred"],
            "env": [
                {"name": "KUBEVIRT_COSCHEDULE_AUDIT", "value": "on"},
                {"name": "KUBEVIRT_COSCHEDULE_OPT_IN_ALL", "valueFrom": {}},
            ],
        },
        {"name": "proxy"},
    ]


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


DECIDING: Final = {
    "migratable": "true",
    "dataEngine": "v2",
    "dataLocality": "strict-local",
    "encrypted": "true",
    "shareManagerNodeSelector": "storage:true",
}
NARROWED: Final[dict[str, tuple[type[Any], Object, Object | None]]] = {
    "attributes of a volume": (
        PersistentVolume,
        named("pv", spec={"csi": {"volumeAttributes": {**DECIDING, "key": HIDDEN}}}),
        named("pv", spec={"csi": {"volumeAttributes": DECIDING}}),
    ),
    "a volume without a driver": (PersistentVolume, named("pv", spec={}), named("pv", spec={})),
    "the label of a Namespace": (
        Namespace,
        {"metadata": {"name": "vms", "labels": {"kubevirt-scheduler/co-schedule": "true", "team": HIDDEN}}},
        {"metadata": {"name": "vms", "labels": {"kubevirt-scheduler/co-schedule": "true"}}},
    ),
    "a setting that is read": (
        Setting,
        named("current-longhorn-version", value="v1.12.1"),
        named("current-longhorn-version", value="v1.12.1"),
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
