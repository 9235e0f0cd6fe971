"""Share-manager pods at their CREATE as plain JSON: a volume, VMs that use it, tickets for it, and a handful of quirks.

As `strategies`, the other way round: the volume is `h0`, and what leads from it to a VM may be odd anywhere.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from support.fakes.views import LONGHORN_NAMESPACE
from support.objects import builders
from support.strategies.affinity_shapes import AFFINITIES, GONE, NODES, OBJECT_QUIRKS, Object, bend, odds, some
from support.strategies.strategies import NAMESPACE, TAINTS, TOLERATIONS, Scenario, node

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
    ("spec.csi", None),
    ("spec.csi.driver", "nfs.csi.k8s.io"),
    ("spec.csi.volumeHandle", "h1"),
    *(("spec.claimRef", value) for value in (None, {}, {"name": "c0"}, {"namespace": NAMESPACE}, GONE)),
    ("spec.claimRef.name", None),
    ("spec.claimRef.namespace", "other"),
]
NODE_QUIRKS = [(path, value) for path, values in OBJECT_QUIRKS["node"].items() if path for value in values]
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
_VM_QUIRKS = some(*((path, value) for path, values in VIRT_LAUNCHER_QUIRKS.items() for value in values))
_TICKETS = st.lists(
    st.tuples(some(*["csi-attacher"] * 5, "share-manager-controller", "", None), some(*PLACES, "")), max_size=5
)


class Objects(tuple[Object, ...]):
    """A cluster's objects, of which an example that fails shows those that are not one like the other."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = [each for each in self if each["metadata"]["name"] not in MANY[2:]]
        return f"{shown} and {len(self) - len(shown)} plain nodes"


@st.composite
def virt_launchers(draw: st.DrawFn, index: int) -> Object:
    """Return a VM's pod: on a node, pinned to one, or neither."""
    only = draw(some(*[None] * 4, *NODES, "ghost"))
    made = builders.vm_pod(
        f"{index}",
        vm=draw(some("x", "y", "z")),
        namespace=draw(some(*[NAMESPACE] * 7, "other")),
        claims=draw(some(*[["c0"]] * 4, ["c0", "c1"], ["c1"], [])),
        opt_in=draw(some(*["true"] * 6, "required", "preferred", "false", "odd", None)),
        node=draw(some(*PLACES)),
        pinned_to=[only] * draw(some(1, 2)) if only else (),
        phase=draw(some("Running", "Running", "Pending", None, "Succeeded", "Failed")),
        deleting=draw(odds(4)),
        created=draw(some(None, EARLY, LATE)),
    )
    if draw(odds(4)):
        _bent(made, *draw(_VM_QUIRKS))
    return made


def _bent(thing: Object, path: str, value: Any) -> None:
    if isinstance(thing.get(path.partition(".")[0]), dict) or "." not in path:
        bend(thing, path, value)


@st.composite
def _volumes(draw: st.DrawFn) -> list[Object]:
    """Return PersistentVolumes. The one that has the name of Longhorn's volume comes first."""
    made = [
        builders.persistent_volume(draw(some(VOLUME, VOLUME, "restored")), claim="c0", handle=VOLUME),
        builders.persistent_volume(
            "other",
            claim=draw(some("c1", "c1", "c0")),
            namespace=draw(some(NAMESPACE, NAMESPACE, "other")),
            handle=draw(some(VOLUME, "h1")),
            driver=draw(some(*[builders.LONGHORN_DRIVER] * 3, None)),
        ),
    ]
    if draw(odds(5)):
        bend(made[0], *draw(some(*VOLUME_QUIRKS)))
    return made[1:] if draw(odds(20)) else made


@st.composite
def _attachments(draw: st.DrawFn) -> list[Object]:
    made = builders.volume_attachment(VOLUME, draw(_TICKETS))
    if draw(odds(8)):
        bend(made, "spec.attachmentTickets", draw(some(None, {}, GONE)))
    return [made] if draw(odds(2)) else []


def _extra_node(index: int, name: str) -> Object:
    made = node(index % len(NODES))
    made["metadata"]["name"] = name
    return made


@st.composite
def scenarios(draw: st.DrawFn, *, large: bool = True) -> Scenario:
    """Return a share-manager pod, on a cluster of four nodes or (`large`) of more than 100, with up to five VM pods."""
    names = [*NODES, *(MANY if large and draw(odds(3)) else ())]
    nodes = {name: _extra_node(index, name) for index, name in enumerate(names)}
    longhorn = {name: builders.longhorn_node(name) for name in names} if draw(st.booleans()) else {}
    for name, taint in draw(st.lists(st.tuples(some(*names[:6]), TAINTS), max_size=3)):
        nodes[name]["spec"].setdefault("taints", []).append(taint)
    for name, quirk in draw(st.lists(st.tuples(some(*names[:6]), some(*NODE_QUIRKS)), max_size=3)):
        bend(nodes[name], *quirk)
    for name in draw(st.lists(some(*names[:6]), max_size=2)) if draw(odds(3)) else ():
        (longhorn if draw(st.booleans()) else nodes).pop(name, None)
    pods = [draw(virt_launchers(index)) for index in range(draw(some(1, 1, 1, 2, 2, 3, 4, 5, 0)))]
    things = [*nodes.values(), *longhorn.values(), *draw(_volumes()), *pods, *draw(_attachments())]
    mode = draw(some(*[Mode.REQUIRED] * 6, *Mode))
    return Scenario(draw(_pods()), Objects(things), mode, Entry.SHARE_MANAGER, LONGHORN_NAMESPACE)


@st.composite
def _pods(draw: st.DrawFn) -> Object:
    pod = builders.share_manager_pod(VOLUME, phase=None, unknown={"kept": [1, None, 0.5]})
    pod["metadata"]["annotations"]["unknown~/é"] = "kept"
    if draw(st.booleans()):
        pod["spec"]["affinity"] = draw(AFFINITIES)
    if draw(odds(3)):
        pod["spec"]["tolerations"] = draw(st.none() | st.lists(TOLERATIONS, max_size=3))
    if draw(odds(4)):
        bend(pod, *draw(some(*POD_QUIRKS)))
    return pod
