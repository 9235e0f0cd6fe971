"""The rules of a pod with which no node is ever required."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.models.one_node import NO_SPEC, cycle_of, volume_of
from support.objects import builders

from webhook.core.reasons import Reason
from webhook.core.scheduler.cycle_state import CycleState, why_never_listed, why_never_required

HARD: Final = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
SOFT: Final = {**HARD, "whenUnsatisfiable": "ScheduleAnyway"}
TERM: Final = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
BY_NAME: Final = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
BY_LABEL: Final = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
BOX: Final = {"name": "compute"}


def box(**fields: Any) -> list[dict[str, Any]]:
    """Two containers; the second has these fields."""
    return [BOX, {"name": "second", **fields}]


def port(host_port: int | None) -> dict[str, Any]:
    """A container's field `ports`."""
    return {"ports": [{"containerPort": 80, "hostPort": host_port}]}


def mount(*options: str) -> dict[str, Any]:
    """A container's field `volumeMounts`."""
    return {"volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "b", "bindMountOptions": list(options)}]}


def labelled(label: str) -> CycleState:
    """A pod with a volume that has a label."""
    return cycle_of(volume_of(labels={"app": "x", label: "a"}))


RESTART: Final = {"restartPolicyRules": [{"action": "RestartAllContainers"}]}
IN_TREE: Final = "awsElasticBlockStore azureDisk azureFile cinder gcePersistentDisk portworxVolume vsphereVolume"
LABELS_OF_ZONES: Final = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
ROWS: Final[list[tuple[str, str, CycleState]]] = [
    (
        "PodTopologySpread",
        "a DoNotSchedule topology spread over rack",
        cycle_of(topologySpreadConstraints=[{"topologyKey": "rack", "maxSkew": 1}]),
    ),
    ("NodePorts", "host port 22", cycle_of(containers=[BOX], initContainers=box(**port(22)))),
    ("DynamicResources", "claims of devices (spec.resourceClaims)", cycle_of(resourceClaims=[{"name": "gpu"}])),
    ("NodeDeclaredFeatures", "hostUsers: false beside hostNetwork", cycle_of(hostNetwork=True, hostUsers=False)),
    ("NodeDeclaredFeatures", "restartPolicyRules", cycle_of(containers=box(**RESTART))),
    ("NodeDeclaredFeatures", "restartPolicyRules", cycle_of(initContainers=box(**RESTART))),
    ("NodeDeclaredFeatures", "bindMountOptions", cycle_of(containers=box(**mount("noexec")))),
    ("VolumeBinding", "claim disk, which is being deleted", cycle_of(volume_of(being_deleted=True))),
    ("VolumeRestrictions", "claim disk, which is ReadWriteOncePod", cycle_of(volume_of(of_one_pod=True))),
    *(
        ("VolumeRestrictions", "inline volume v", cycle_of(volumes=[{"name": "v", kind: {}}]))
        for kind in ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
    ),
    *(
        (
            "VolumeBinding",
            f"claim disk, whose PersistentVolume is of the in-tree kind {kind}",
            cycle_of(volume_of(driver=None, source={kind: {"fsType": "ext4"}})),
        )
        for kind in IN_TREE.split()
    ),
    (
        "NodeAffinity",
        "a required node affinity term with matchFields",
        cycle_of(affinity=builders.node_affinity(required=[BY_LABEL, BY_NAME])),
    ),
    (
        "NodeVolumeLimits",
        "claim disk, whose volume is of CSI driver rbd.csi.ceph.com",
        cycle_of(NO_SPEC, volume_of(), volume_of(driver="rbd.csi.ceph.com")),
    ),
    *(
        ("VolumeZone", f"claim disk, whose PersistentVolume has the label {label}", labelled(label))
        for label in LABELS_OF_ZONES
    ),
]
LISTED: Final = {"NodeVolumeLimits"}


@pytest.mark.parametrize(("plugin", "what", "cycle"), ROWS, ids=[f"{plugin}: {what}" for plugin, what, _ in ROWS])
def test_a_pod_with_one_of_the_rules_is_never_required(plugin: str, what: str, cycle: CycleState) -> None:
    """The reason names the rule and its plugin. Nearly none of them has a short list either."""
    why = Reason.RULE_NOT_EVALUATED.why(what=what, plugin=plugin)
    assert why_never_required(cycle) == why
    assert why_never_listed(cycle) == (None if plugin in LISTED else why)


PREFERS: Final = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]}
PLAIN: Final = {
    "a launcher pod": cycle_of(volume_of()),
    "nulls": cycle_of(containers=None, initContainers=None, affinity=None),
    "what restricts nodes one by one": cycle_of(
        nodeSelector={"disk": "nvme"},
        affinity=builders.node_affinity(required=[BY_LABEL], preferred={"n1": 1}),
        tolerations=[{"operator": "Exists"}],
        containers=[{"name": "compute", "resources": {"requests": {"cpu": "1", "devices.kubevirt.io/kvm": "1"}}}],
        overhead={"cpu": "1"},
    ),
    "rules between pods that only prefer": cycle_of(
        topologySpreadConstraints=[SOFT], affinity={"podAffinity": PREFERS, "podAntiAffinity": PREFERS}
    ),
    "ports of the pod": cycle_of(containers=[{"name": "a", **port(None)}, {"name": "b", **port(0)}]),
    "the node's network and users": cycle_of(hostNetwork=True, hostUsers=True),
    "a mount without options": cycle_of(containers=box(**mount())),
    "an inline volume that pods share": cycle_of(volumes=[{"name": "v", "nfs": {}}, {"name": "w", "configMap": {}}]),
    "a volume with a node affinity and a label": cycle_of(volume_of(terms=[BY_LABEL], labels={"zone": "a"})),
    "a volume that tells nothing": cycle_of(NO_SPEC),
}


@pytest.mark.parametrize("cycle", PLAIN.values(), ids=PLAIN)
def test_a_plain_pod_has_none_of_the_rules(cycle: CycleState) -> None:
    """What it has is evaluated node by node, or rejects no node."""
    assert why_never_required(cycle) is None
    assert why_never_listed(cycle) is None
