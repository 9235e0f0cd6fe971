"""Admissions as plain JSON: a healthy cluster and a plain pod, bent by a handful of quirks.

Starting from what works keeps the deep cases common and shrinks to the one quirk that matters.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from support.fakes.views import LONGHORN_NAMESPACE
from support.strategies.affinity_shapes import AFFINITIES, NODES, OPEN_TERM, SELECTORS, odds, some, whole

from webhook.core.admit import Entry
from webhook.core.opt_in import Mode, Policy

NAMESPACE = "vms"
GONE = object()
READY = {"conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]}
NODE_LABELS = (
    {"zone": "a", "disk": "ssd", "cpu": "16"},
    {"zone": "b", "disk": "", "cpu": "3"},
    {"zone": "a", "cpu": "9223372036854775807"},
    {},
)
Object = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """One admission: the pod, the cluster, the operator's mode, and by which entry the API server asks where."""

    pod: Object
    objects: tuple[Object, ...]
    mode: Mode
    entry: Entry = Entry.VIRT_LAUNCHER
    namespace: str = NAMESPACE

    @property
    def policy(self) -> Policy:
        """The policy with that mode."""
        return Policy(mode=self.mode)


def review_of(pod: Object, uid: str = "uid-1", **request: Any) -> bytes:
    """The AdmissionReview of this pod's CREATE; `request` overrides fields of the request."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    asked = {"uid": uid, "kind": kind, "namespace": NAMESPACE, "operation": "CREATE", "object": pod, **request}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()


def _object(api_version: str, kind: str, name: str, namespace: str | None = None, **fields: Any) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        **fields,
    }


def _longhorn(kind: str, name: str, status: Object) -> Object:
    return _object("longhorn.io/v1beta2", kind, name, LONGHORN_NAMESPACE, status=status)


def node(index: int) -> Object:
    """A healthy node."""
    made = _object("v1", "Node", NODES[index], spec={}, status=copy.deepcopy(READY))
    made["metadata"]["labels"] = dict(NODE_LABELS[index])
    return made


def chain(index: int, home: str) -> dict[str, Object]:
    """What leads from claim `c<index>` to a share-manager whose pod runs on `home`."""
    claim = {"accessModes": ["ReadWriteMany"], "volumeName": f"pv{index}"}
    csi = {"driver": "driver.longhorn.io", "volumeHandle": f"h{index}", "volumeAttributes": {"share": "true"}}
    pod = _object("v1", "Pod", f"share-manager-h{index}", LONGHORN_NAMESPACE, spec={"nodeName": home})
    pod["metadata"]["labels"] = {"longhorn.io/component": "share-manager"}
    pod["status"] = {"phase": "Running"}
    status = {"phase": "Bound"}
    return {
        "claim": _object("v1", "PersistentVolumeClaim", f"c{index}", NAMESPACE, spec=claim, status=status),
        "volume": _object("v1", "PersistentVolume", f"pv{index}", spec={"csi": csi}),
        "manager": _longhorn("ShareManager", f"h{index}", {"ownerID": home, "state": "running"}),
        "pod": pod,
    }


def _disk(index: int) -> Object:
    return {"name": f"disk{index}", "persistentVolumeClaim": {"claimName": f"c{index}"}}


def launcher(claim_count: int) -> Object:
    """A launcher pod that opted in, with that many claims."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "virt-launcher-vm-",
            "labels": {"kubevirt.io": "virt-launcher"},
            "annotations": {"kubevirt-scheduler/co-schedule": "true", "unknown~/é": "kept"},
        },
        "spec": {
            "containers": [{"name": "compute"}],
            "volumes": [_disk(i) for i in range(claim_count)],
            "unknown": {"kept": [1, None, 0.5]},
        },
    }


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
    "spec.volumes": [None, [{"name": "scratch", "ephemeral": {}}], [_disk(0), {"name": "scratch", "ephemeral": {}}]],
}

TAINTS = whole(
    key=some("dedicated", "load", "load", "node.kubernetes.io/unschedulable"),
    value=some("vm", "5", "5", "05", "-5", "0", "", None, "9223372036854775808"),
    effect=some("NoSchedule", "NoExecute", "PreferNoSchedule"),
)
TOLERATIONS = whole(
    key=some("dedicated", "load", "", None),
    operator=some("Exists", "Equal", "Gt", "Lt", "", None, "Bogus"),
    value=some("vm", "5", "4", "-6", "-0", "x", "", None, "9223372036854775807"),
    effect=some("NoSchedule", "NoExecute", "", None),
)


_INDEXES = some(0, 0, 0, 1, 1, 2, 3)  # the first ones are there more often


def _evenly(quirks: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    """(path, value) for each value, as many for each path: none is rare for being short of values."""
    return [(path, value) for path, values in quirks.items() for value in (values * _EACH)[:_EACH]]


_EACH = max(len(values) for paths in OBJECT_QUIRKS.values() for values in paths.values())
_QUIRKS = st.lists(
    st.tuples(_INDEXES, some(*((part, *quirk) for part, paths in OBJECT_QUIRKS.items() for quirk in _evenly(paths)))),
    max_size=6,
)
_POD_QUIRKS = some(*_evenly(POD_QUIRKS))


def bend(thing: Object, path: str, value: Any) -> None:
    """Set a field by its dotted path (annotation and label keys keep their dots); GONE removes it."""
    *parents, last = path.split(".", 2)
    for key in parents:
        thing = thing.get(key) or {}  # a parent that an earlier quirk took away: nothing to bend
    if value is GONE:
        thing.pop(last, None)
    else:
        thing[last] = copy.deepcopy(value)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A pod with up to four claims, on a cluster of up to four nodes."""
    homes = draw(st.lists(some(*NODES * 4, "ghost", "Bad_Name"), min_size=0 if draw(odds(20)) else 1, max_size=4))
    parts = {("node", i): node(i) for i in range(len(NODES))}
    if draw(st.booleans()):
        parts |= {("longhorn_node", i): _longhorn("Node", name, copy.deepcopy(READY)) for i, name in enumerate(NODES)}
    for index, home in enumerate(homes):
        parts |= {(part, index): thing for part, thing in chain(index, home).items()}
        if draw(odds(2)):
            del parts["pod", index]
    for index, taint in draw(st.lists(st.tuples(_INDEXES, TAINTS), max_size=2)) if draw(odds(3)) else []:
        parts["node", index]["spec"].setdefault("taints", []).append(taint)
    if homes and draw(odds(6)):
        parts["volume", 0]["spec"]["nodeAffinity"] = {"required": draw(SELECTORS)}
    if homes and draw(odds(6)):  # the two make a difference together
        parts["volume", 0]["spec"]["csi"]["volumeAttributes"] = V2
        parts["node", draw(_INDEXES)]["metadata"]["labels"] |= WITHOUT_V2
    for index, (part, path, value) in draw(_QUIRKS):
        if not path:
            parts.pop((part, index), None)
        elif (part, index) in parts:
            bend(parts[part, index], path, value)
    return Scenario(draw(_pods(len(homes))), tuple(parts.values()), draw(some(*[Mode.REQUIRED] * 8, *Mode)))


@st.composite
def _pods(draw: st.DrawFn, claim_count: int) -> Object:
    pod = launcher(claim_count)
    if not draw(odds(3)):
        pod["spec"]["affinity"] = draw(AFFINITIES)
    if draw(odds(3)):
        pod["spec"]["tolerations"] = draw(st.none() | st.lists(TOLERATIONS, max_size=3))
    if claim_count and draw(odds(4)):
        pod["spec"]["volumes"][draw(st.integers(0, claim_count - 1))]["name"] = "vm-state"
    if draw(odds(3)):
        bend(pod, *draw(_POD_QUIRKS))
    return pod
