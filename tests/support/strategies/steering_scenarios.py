"""Share-manager pods at their CREATE as plain JSON: a volume, VMs that use it, tickets for it, and a handful of quirks.

The volume is `h0`. As `strategies`, of which the nodes and the quirks are.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from support.fakes.views import LONGHORN_NAMESPACE
from support.strategies.affinity_shapes import AFFINITIES, NODES, odds, some
from support.strategies.quirks import GONE, OBJECT_QUIRKS, Object, bend
from support.strategies.strategies import NAMESPACE, READY, TAINTS, TOLERATIONS, Scenario, chain, node

from webhook.core.admit import Entry
from webhook.core.opt_in import Mode

VOLUME = "h0"
MANY = tuple(f"m{i}" for i in range(1, 111))  # more than the scheduler always scores all of
PLACES = (*NODES * 3, *MANY[:2], "ghost", "Bad_Name", *[None] * 8)
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"

POD_QUIRKS: list[tuple[str, Any]] = [
    ("metadata.annotations", None),
    ("metadata.annotations.kubevirt-scheduler/decision", "stale"),
    ("metadata.labels", None),
    ("metadata.labels.longhorn.io/share-manager", GONE),
    ("metadata.labels.longhorn.io/share-manager", "other"),
    ("metadata.name", GONE),
    ("spec.nodeName", "n1"),
    ("spec.nodeSelector", {"zone": "a"}),
    ("spec.resourceClaims", [{"name": "gpu"}]),
]
VOLUME_QUIRKS: list[tuple[str, Any]] = [
    ("", GONE),
    ("spec.csi", None),
    ("spec.csi.driver", "nfs.csi.k8s.io"),
    ("spec.csi.volumeHandle", "h1"),
    ("spec.claimRef", None),
    ("spec.claimRef.name", None),
    ("spec.claimRef.namespace", "other"),
]
NODE_QUIRKS = [(path, value) for path, values in OBJECT_QUIRKS["node"].items() if path for value in values]


class Objects(tuple[Object, ...]):
    """A cluster's objects, of which an example that fails shows those that are not one like the other."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = [each for each in self if each["metadata"]["name"] not in MANY[2:]]
        return f"{shown} and {len(self) - len(shown)} plain nodes"


def vm(index: int, told: Object) -> Object:
    """A virt-launcher pod that is what `told` says."""
    metadata: Object = {
        "name": f"virt-launcher-{index}",
        "namespace": told["namespace"],
        "labels": {"kubevirt.io": "virt-launcher"},
        "creationTimestamp": told["created"],
    }
    if told["deleting"]:
        metadata["deletionTimestamp"] = LATE
    if told["optIn"] is not GONE:
        metadata["annotations"] = {"kubevirt-scheduler/co-schedule": told["optIn"]}
    if told["vm"]:
        metadata["ownerReferences"] = [
            {"kind": "VirtualMachineInstance", "name": told["vm"], "uid": f"uid-{told['vm']}"}
        ]
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in told["claims"]]
    spec: Object = {"containers": [{"name": "compute"}], "volumes": volumes, "nodeName": told["node"]}
    if told["pinnedTo"]:
        spec["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [told["pinnedTo"]]}]}
                    ]
                }
            }
        }
    status = {"phase": told["phase"]} if told["phase"] else None
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


_VMS = st.lists(
    st.fixed_dictionaries(
        {
            "vm": some("x", "y", "z", None),
            "namespace": some(*[NAMESPACE] * 7, "other"),
            "claims": some(["c0"], ["c0"], ["c0"], ["c0", "c1"], ["c1"], []),
            "optIn": some(*["true"] * 6, "required", "preferred", "false", "odd", GONE),
            "node": some(*PLACES),
            "pinnedTo": some(*[None] * 4, *NODES, "ghost"),
            "phase": some("Running", "Running", "Pending", None, "Succeeded", "Failed"),
            "deleting": odds(4),
            "created": some(None, EARLY, LATE),
        }
    ),
    max_size=5,
)
_TICKETS = st.lists(
    st.tuples(some("csi-attacher", "csi-attacher", "share-manager-controller", None), some(*PLACES, "")), max_size=5
)


def attachment(tickets: list[tuple[str | None, str | None]]) -> Object:
    """Return Longhorn's VolumeAttachment with these tickets."""
    made = {f"t{i}": {"type": type_, "nodeID": node_id} for i, (type_, node_id) in enumerate(tickets)}
    return {
        "apiVersion": "longhorn.io/v1beta2",
        "kind": "VolumeAttachment",
        "metadata": {"name": VOLUME, "namespace": LONGHORN_NAMESPACE},
        "spec": {"attachmentTickets": made},
    }


def volume(index: int, handle: str) -> Object:
    """Return a PersistentVolume, bound to claim `c<index>`."""
    made = chain(index, "n1")["volume"]
    made["spec"]["csi"]["volumeHandle"] = handle
    made["spec"]["claimRef"] = {"namespace": NAMESPACE, "name": f"c{index}"}
    return made


def _longhorn_node(name: str) -> Object:
    return {
        "apiVersion": "longhorn.io/v1beta2",
        "kind": "Node",
        "metadata": {"name": name, "namespace": LONGHORN_NAMESPACE},
        "status": READY,
    }


def _extra_node(index: int, name: str) -> Object:
    made = node(index % len(NODES))
    made["metadata"]["name"] = name
    return made


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Return a share-manager pod, on a cluster of four nodes or of more than a hundred."""
    names = [*NODES, *(MANY if draw(odds(3)) else ())]
    nodes = {name: _extra_node(index, name) for index, name in enumerate(names)}
    longhorn = {name: _longhorn_node(name) for name in names} if draw(st.booleans()) else {}
    volumes = [volume(0, VOLUME), volume(1, draw(some(VOLUME, "h1")))]
    for name, taint in draw(st.lists(st.tuples(some(*names[:6]), TAINTS), max_size=3)):
        nodes[name]["spec"].setdefault("taints", []).append(taint)
    for name, quirk in draw(st.lists(st.tuples(some(*names[:6]), some(*NODE_QUIRKS)), max_size=3)):
        bend(nodes[name], *quirk)
    for name in draw(st.lists(some(*names[:6]), max_size=2)) if draw(odds(3)) else ():
        (longhorn if draw(st.booleans()) else nodes).pop(name, None)
    if draw(odds(5)):
        path, value = draw(some(*VOLUME_QUIRKS))
        if path:
            bend(volumes[0], path, value)
        else:
            del volumes[0]
    told = draw(_VMS)
    things = [*nodes.values(), *longhorn.values(), *volumes, *(vm(i, each) for i, each in enumerate(told))]
    if draw(odds(2)):
        things.append(attachment(draw(_TICKETS)))
    mode = draw(some(*[Mode.REQUIRED] * 6, *Mode))
    return Scenario(draw(_pods()), Objects(things), mode, Entry.SHARE_MANAGER, LONGHORN_NAMESPACE)


@st.composite
def _pods(draw: st.DrawFn) -> Object:
    labels = {"longhorn.io/component": "share-manager", "longhorn.io/share-manager": VOLUME}
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"share-manager-{VOLUME}", "labels": labels, "annotations": {"unknown~/é": "kept"}},
        "spec": {"containers": [{"name": "share-manager"}], "unknown": {"kept": [1, None, 0.5]}},
    }
    if draw(st.booleans()):
        pod["spec"]["affinity"] = draw(AFFINITIES)
    if draw(odds(3)):
        pod["spec"]["tolerations"] = draw(st.none() | st.lists(TOLERATIONS, max_size=3))
    if draw(odds(4)):
        bend(pod, *draw(some(*POD_QUIRKS)))
    return pod
