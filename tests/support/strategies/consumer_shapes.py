"""A share-manager pod and the VMs that use its volume, as plain JSON: plain ones, bent by a handful of quirks.

As `strategies`, the other way round: the volume is `h0`, and what leads from it to a VM may be odd anywhere.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st
from support.objects import builders
from support.strategies.affinity_shapes import AFFINITIES, NODES, odds, some
from support.strategies.quirks import GONE, Object, bend
from support.strategies.strategies import Scenario, node

from webhook.core.admit import Entry
from webhook.core.opt_in import Mode

VOLUME = "h0"
_VMS = ("db01", "db02")
_CREATED = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", None)
_PREFER_NOT = {
    "weight": 100,
    "preference": {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["n2"]}]},
}
VIRT_LAUNCHER_QUIRKS: dict[str, list[Any]] = {
    "metadata.annotations": [None, {}, {"kubevirt-scheduler/co-schedule": "yes"}],
    "metadata.annotations.kubevirt-scheduler/decision": ["required on n1: so it is", ""],
    "metadata.labels.kubevirt.io/migrationJobUID": ["x", ""],
    "metadata.ownerReferences": [None, [], [{"kind": "ReplicaSet", "name": "db01"}]],
    "metadata.deletionTimestamp": ["2026-01-01T00:00:00Z"],
    "metadata.creationTimestamp": [None],
    "spec": [{}],
    "spec.volumes": [None, [], [{"name": "empty", "emptyDir": {}}], [builders.claim_volume("again", "c0")] * 2],
    "spec.nodeName": ["", None, "ghost", "Bad_Name"],
    "spec.schedulerName": ["", None, "default-scheduler", "volcano"],
    "spec.nodeSelector": [None, {}, {"kubernetes.io/hostname": "n1", "kubevirt.io/schedulable": "true"}],
    "spec.affinity": [None, {}, {"nodeAffinity": None}, {"nodeAffinity": {}}],
    "status": [None, {}, {"phase": "Succeeded"}, {"phase": "Failed"}],
}
_QUIRKS = some(*((path, value) for path, values in VIRT_LAUNCHER_QUIRKS.items() for value in values))
_TICKETS = st.tuples(
    some(*["csi-attacher"] * 5, "share-manager-controller", "", None), some(*NODES * 3, "ghost", "Bad_Name", "", None)
)


@st.composite
def virt_launchers(draw: st.DrawFn, index: int) -> Object:
    """Return a VM's pod: on a node, pinned to one, or neither."""
    made = builders.vm_pod(
        f"{index}",
        vm=draw(some(*_VMS)),
        namespace=draw(some(*["vms"] * 9, "others")),
        claims=draw(some(*[["c0"]] * 4, ["c0", "c1"], ["c1"], [])),
        opt_in=draw(some(*["true"] * 5, "required", "preferred", "false", None)),
        node=draw(some(*NODES, None, None)),
        created=draw(some(*_CREATED)),
        deleting=draw(odds(5)),
    )
    if draw(odds(3)):
        only = draw(some(*NODES))
        made["spec"]["affinity"] = builders.node_affinity(required=[builders.on_node(only)] * draw(some(1, 2)))
    if draw(odds(3)):
        _bent(made, *draw(_QUIRKS))
    return made


def _bent(thing: Object, path: str, value: Any) -> None:
    if isinstance(thing.get(path.partition(".")[0]), dict) or "." not in path:
        bend(thing, path, value)


@st.composite
def _volumes(draw: st.DrawFn) -> list[Object]:
    """Return PersistentVolumes. The one that has the name of Longhorn's volume comes first."""
    usual = draw(some("h0", "h0", "restored"))
    made = [builders.persistent_volume(usual, claim="c0", handle=VOLUME)]
    for name in [each for each in ("h0", "restored", "other") if each != usual and draw(odds(3))]:
        volume = builders.persistent_volume(
            name,
            claim=draw(some("c0", "c1")),
            namespace=draw(some("vms", "vms", "others")),
            handle=draw(some("h0", "h0", "h1")),
            driver=draw(some(*["driver.longhorn.io"] * 3, "nfs.csi.k8s.io", None)),
        )
        made.append(volume)
    if draw(odds(10)):
        bend(made[-1], "spec.claimRef", draw(some(None, {}, {"name": "c0"}, {"namespace": "vms"}, GONE)))
    return sorted(made, key=lambda each: each["metadata"]["name"] != VOLUME)


@st.composite
def _attachments(draw: st.DrawFn) -> list[Object]:
    made = builders.volume_attachment(VOLUME, [])
    tickets = draw(st.lists(_TICKETS, max_size=4))
    made["spec"]["attachmentTickets"] = {str(at): {"type": t, "nodeID": n} for at, (t, n) in enumerate(tickets)}
    if draw(odds(8)):
        bend(made, "spec.attachmentTickets", draw(some(None, {}, GONE)))
    return [] if draw(odds(4)) else [made]


@st.composite
def _pods(draw: st.DrawFn) -> Object:
    made = builders.share_manager_pod(VOLUME, phase=None)
    if draw(odds(3)):
        made["spec"]["affinity"] = draw(AFFINITIES)
    elif draw(odds(3)):
        made["spec"]["affinity"] = {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [copy.deepcopy(_PREFER_NOT)]}
        }
    return made


@st.composite
def cold_starts(draw: st.DrawFn) -> Scenario:
    """Return a share-manager pod at its creation, on a cluster of four nodes and up to four VM pods."""
    nodes = [node(index) for index in range(len(NODES))]
    for each in nodes:
        if draw(odds(6)):
            bend(each, *draw(some(("spec.unschedulable", True), ("status", None))))
    longhorn = [builders.longhorn_node(name, ready=draw(some(*["True"] * 5, "False"))) for name in NODES]
    pods = [draw(virt_launchers(index)) for index in range(draw(some(1, 1, 1, 2, 2, 3, 4, 0)))]
    objects = [*nodes, *(longhorn if draw(st.booleans()) else []), *draw(_volumes()), *pods, *draw(_attachments())]
    mode = draw(some(Mode.REQUIRED, Mode.PREFERRED))
    return Scenario(draw(_pods()), tuple(objects), mode, Entry.SHARE_MANAGER, builders.LONGHORN_NAMESPACE)
