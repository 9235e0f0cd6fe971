"""What can be odd about the objects of an admission: a path in the object and the odd values of that field."""

from __future__ import annotations

import copy
from typing import Any

from support.strategies.affinity_shapes import NODES, OPEN_TERM

Object = dict[str, Any]
GONE = object()


def disk(index: int) -> Object:
    """Return the pod's volume of the claim `c<index>`."""
    return {"name": f"disk{index}", "persistentVolumeClaim": {"claimName": f"c{index}"}}


_DELETED = {"metadata.deletionTimestamp": ["2026-01-01T00:00:00Z"]}
_READINESS = {"": [GONE], "status": [None, {}, {"conditions": None}, {"conditions": [{"type": "Ready"}]}]}
_EVIDENCE = [*NODES, "ghost", "Bad_Name", "", None]
_OPT_IN, _DECISION = (
    "metadata.annotations.kubevirt-scheduler/co-schedule",
    "metadata.annotations.kubevirt-scheduler/decision",
)
LOCAL, V2 = {"dataLocality": "strict-local"}, {"dataEngine": "v2"}
WITHOUT_V2 = {"node.longhorn.io/disable-v2-data-engine": "true"}
OBJECT_QUIRKS: dict[str, dict[str, list[Any]]] = {
    "node": {
        **_DELETED,
        **_READINESS,
        "spec.unschedulable": [True, True, True, False],
        "metadata.labels": [None, {}, WITHOUT_V2],
    },
    "longhorn_node": _READINESS,
    "claim": {
        "": [GONE],
        "spec": [None],
        "spec.accessModes": [None, [], ["ReadWriteOnce"], ["ReadOnlyMany", "ReadWriteMany"]],
        "spec.volumeName": [None, "", "lost", "pv0", "pv0"],
        "spec.volumeMode": ["Filesystem", "Block"],
        "status": [None, {}, {"phase": "Pending"}, {"phase": "Lost"}],
    },
    "volume": {
        "": [GONE],
        "spec.csi": [None, {}],
        "spec.csi.driver": [None, "nfs.csi.k8s.io"],
        "spec.csi.volumeHandle": ["", None, "h0", "h0"],
        "spec.csi.volumeAttributes": [None, *({"migratable": value} for value in ("true", "T", "false")), LOCAL, V2],
        "spec.volumeMode": ["Filesystem", "Block"],
        "metadata.labels": [None, {}, {"topology.kubernetes.io/zone": "north__south"}],
        "spec.nodeAffinity": [None, {}, {"required": None}, {"required": {"nodeSelectorTerms": [OPEN_TERM]}}],
    },
    "manager": {
        "": [GONE],
        "status": [None, {}],
        "status.ownerID": _EVIDENCE,
        "status.state": [None, "", "starting", "stopped", "error"],
    },
    "pod": {
        **_DELETED,
        "": [GONE, GONE, GONE],
        "spec": [{}],
        "spec.nodeName": _EVIDENCE,
        "status": [None, {}, {"phase": "Pending"}, {"phase": "Failed"}],
        "metadata.labels": [None, {}],
    },
}
POD_QUIRKS: dict[str, list[Any]] = {
    _OPT_IN: ["required", "preferred", "false", "True", "", GONE],
    _DECISION: ["stale"],
    "metadata.annotations": [None, {}],
    "metadata.annotations.kubevirt.io/ephemeral-provisioning": ["true", "false"],
    "metadata.labels": [None, {"kubevirt.io": "hotplug-disk"}],
    "metadata.labels.kubevirt.io/migrationJobUID": [""],
    "spec.nodeName": ["n1", "", None],
    "spec.nodeSelector": [None, {}, {"zone": "a"}, {"disk": ""}],
    "spec.resourceClaims": [None, [{"name": "gpu"}]],
    "spec.topologySpreadConstraints": [[], [{"whenUnsatisfiable": "ScheduleAnyway"}], [{"topologyKey": "zone"}]],
    "spec.volumes": [None, [{"name": "scratch", "ephemeral": {}}], [disk(0), {"name": "scratch", "ephemeral": {}}]],
}


def evenly(quirks: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    """Return (path, value) pairs, equally many for each path: a path with few values is as frequent as any other."""
    return [(path, value) for path, values in quirks.items() for value in (values * _EACH)[:_EACH]]


_EACH = max(len(values) for paths in OBJECT_QUIRKS.values() for values in paths.values())


def bend(thing: Object, path: str, value: Any) -> None:
    """Set a field by its dotted path (annotation and label keys keep their dots); GONE removes it."""
    *parents, last = path.split(".", 2)
    for key in parents:
        thing = thing.get(key) or {}  # a parent that an earlier quirk took away: nothing to bend
    if value is GONE:
        thing.pop(last, None)
    else:
        thing[last] = copy.deepcopy(value)
