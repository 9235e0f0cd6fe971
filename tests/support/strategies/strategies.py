"""Admissions as plain JSON: a healthy cluster and a plain pod, changed by a few quirks.

Each example starts from a working one: deep cases are frequent, and a failure shrinks to the quirk that causes it.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from support.fakes.views import LONGHORN_NAMESPACE
from support.objects import owners
from support.strategies.affinity_shapes import (
    AFFINITIES,
    NODES,
    OBJECT_QUIRKS,
    POD_QUIRKS,
    SELECTORS,
    V2,
    WITHOUT_V2,
    Object,
    bend,
    disk,
    evenly,
    odds,
    some,
    whole,
)

from webhook.core.admit import Entry
from webhook.core.opt_in import Mode, Policy

NAMESPACE = "vms"
READY = {
    "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}],
    "allocatable": {"cpu": "64", "memory": "512Gi", "pods": "1000"},
}
NODE_LABELS = (
    {"zone": "a", "disk": "ssd", "cpu": "16"},
    {"zone": "b", "disk": "", "cpu": "3"},
    {"zone": "a", "cpu": "9223372036854775807"},
    {},
)


@dataclass(frozen=True)
class Scenario:
    """One admission: the pod, the cluster, the operator's mode, and the entry and namespace of the call."""

    pod: Object
    objects: tuple[Object, ...]
    mode: Mode
    entry: Entry = Entry.VIRT_LAUNCHER
    namespace: str = NAMESPACE

    def __post_init__(self) -> None:
        """The cluster has the object that owns the pod."""
        review = {"request": {"namespace": self.namespace, "object": self.pod}}
        objects = type(self.objects)(owners.with_owner(self.objects, review))
        object.__setattr__(self, "objects", objects)

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
    """Return a healthy node."""
    made = _object("v1", "Node", NODES[index], spec={}, status=copy.deepcopy(READY))
    made["metadata"]["labels"] = dict(NODE_LABELS[index])
    return made


def chain(index: int, home: str) -> dict[str, Object]:
    """Return the objects from claim `c<index>` to a share-manager whose pod runs on `home`."""
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


def opted_in_pod(claim_count: int) -> Object:
    """Return a virt-launcher pod that opts in, with that many claims."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "virt-launcher-vm-",
            "labels": {"kubevirt.io": "virt-launcher"},
            "annotations": {"kubevirt-scheduler/co-schedule": "true", "unknown~/é": "kept"},
            "ownerReferences": [
                {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "vm", "uid": "uid-of-vm"}
            ],
        },
        "spec": {
            "containers": [{"name": "compute"}],
            "volumes": [disk(i) for i in range(claim_count)],
            "unknown": {"kept": [1, None, 0.5]},
        },
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


_QUIRKS = st.lists(
    st.tuples(_INDEXES, some(*((part, *quirk) for part, paths in OBJECT_QUIRKS.items() for quirk in evenly(paths)))),
    max_size=6,
)
_POD_QUIRKS = some(*evenly(POD_QUIRKS))


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Return a pod with up to four claims, on a cluster of up to four nodes."""
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
    pod = opted_in_pod(claim_count)
    if not draw(odds(3)):
        pod["spec"]["affinity"] = draw(AFFINITIES)
    if draw(odds(3)):
        pod["spec"]["tolerations"] = draw(st.none() | st.lists(TOLERATIONS, max_size=3))
    if claim_count and draw(odds(4)):
        pod["spec"]["volumes"][draw(st.integers(0, claim_count - 1))]["name"] = "vm-state"
    if draw(odds(3)):
        bend(pod, *draw(_POD_QUIRKS))
    return pod
