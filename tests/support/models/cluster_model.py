"""An independent model of what the cluster shows: which nodes have firm evidence, and where a pod can really start.

It works on plain dicts and follows Longhorn's and Kubernetes' behavior, not `webhook`. The property tests compare the
webhook's answers with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from support.models import oracle
from support.models.oracle import Json

LONGHORN_NAMESPACE = "longhorn-system"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class ClusterModel:
    """Objects by apiVersion, kind, namespace and name."""

    def __init__(self, objects: Iterable[Json]) -> None:
        self._objects = {
            (o["apiVersion"], o["kind"], o["metadata"].get("namespace") or "", o["metadata"]["name"]): o
            for o in objects
        }

    def get(self, kind: str, name: str, namespace: str = "", api_version: str = "v1") -> Json | None:
        """Return the object, None if the cluster has none."""
        return self._objects.get((api_version, kind, namespace, name))

    def longhorn(self, kind: str, name: str) -> Json | None:
        """Return an object of Longhorn, None if the cluster has none."""
        return self.get(kind, name, LONGHORN_NAMESPACE, "longhorn.io/v1beta2")

    @property
    def nodes(self) -> list[Json]:
        """Return every Kubernetes node."""
        return [o for (version, kind, _, _), o in self._objects.items() if (version, kind) == ("v1", "Node")]

    def bound_volumes(self, pod: Json, namespace: str) -> Iterator[tuple[Json, Json]]:
        """Return (claim, PersistentVolume) for each bound claim of the pod."""
        for volume in pod["spec"].get("volumes") or []:
            source = volume.get("persistentVolumeClaim")
            claim = source and self.get("PersistentVolumeClaim", source["claimName"], namespace)
            phase = claim and ((claim.get("status") or {}).get("phase") or "Bound")
            name = claim and (claim.get("spec") or {}).get("volumeName")
            pv = self.get("PersistentVolume", name) if name and phase == "Bound" else None
            if claim and pv:
                yield claim, pv

    def firm_nodes(self, pod: Json, namespace: str) -> set[str]:
        """Return the nodes on which a disk's share-manager is known to be.

        The claim of the VM's state is not a disk.
        """
        state = {
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["spec"].get("volumes") or []
            if volume["name"] == "vm-state"
        }
        handles = {
            (pv.get("spec") or {})["csi"]["volumeHandle"]
            for claim, pv in self.bound_volumes(pod, namespace)
            if _has_share_manager(claim, pv) and claim["metadata"]["name"] not in state
        }
        return set(filter(None, map(self._firm_node, handles)))

    def _firm_node(self, handle: str) -> str | None:
        manager = self.longhorn("ShareManager", handle)
        if manager is None:
            return None
        pod = self.get("Pod", f"share-manager-{handle}", LONGHORN_NAMESPACE)
        if pod and _alive(pod):
            return pod["spec"].get("nodeName") or None
        status = manager.get("status") or {}
        if (status.get("state") or "running") in ("running", "starting"):
            return status.get("ownerID") or None
        return None

    def _all_bound(self, pod: Json, namespace: str) -> bool:
        bound = {claim["metadata"]["name"] for claim, _ in self.bound_volumes(pod, namespace)}
        return bound == _claim_names(pod)

    def can_start(self, pod: Json, namespace: str, name: str) -> bool:
        """Whether the pod is certain to be bound to this node, and Longhorn would attach its volumes there."""
        node = self.get("Node", name)
        if not self._all_bound(pod, namespace) or _depends_on_others(pod):
            return False
        if any(_on_one_unknown_node(claim, pv) for claim, pv in self.bound_volumes(pod, namespace)):
            return False
        if node is None or node["metadata"].get("deletionTimestamp") or not _ready(node):
            return False
        if _disables_v2(node) and any(self._is_attached(*bound, name) for bound in self.bound_volumes(pod, namespace)):
            return False
        longhorn_nodes = [key for key in self._objects if key[0].startswith("longhorn.io/") and key[1] == "Node"]
        if longhorn_nodes and not _ready(self.longhorn("Node", name) or {}):
            return False
        return oracle.admits(pod, node, [pv for _, pv in self.bound_volumes(pod, namespace)])

    def _is_attached(self, claim: Json, pv: Json, name: str) -> bool:
        """Whether Longhorn would have to attach a volume of data engine v2 on this node."""
        csi = (pv.get("spec") or {}).get("csi") or {}
        if csi.get("driver") != "driver.longhorn.io" or (csi.get("volumeAttributes") or {}).get("dataEngine") != "v2":
            return False
        if not csi.get("volumeHandle"):  # Longhorn has no volume without a name
            return False
        return not _has_share_manager(claim, pv) or self._firm_node(csi["volumeHandle"]) == name


def _disables_v2(node: Json) -> bool:
    return (node["metadata"].get("labels") or {}).get("node.longhorn.io/disable-v2-data-engine") == "true"


def _claim_names(pod: Json) -> set[str]:
    sources = [volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes") or []]
    return {source["claimName"] for source in sources if source}


def _depends_on_others(pod: Json) -> bool:
    """Whether other pods, free devices or a claim that is bound later can reject a node: then no node is certain."""
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    return (
        any((affinity.get(kind) or {}).get(REQUIRED) for kind in ("podAffinity", "podAntiAffinity"))
        or any(c.get("whenUnsatisfiable") != "ScheduleAnyway" for c in spec.get("topologySpreadConstraints") or [])
        or bool(spec.get("resourceClaims"))
        or any("ephemeral" in volume for volume in spec.get("volumes") or [])
    )


def _on_one_unknown_node(claim: Json, pv: Json) -> bool:
    """Longhorn attaches a strict-local volume on the node of its replica, without a share-manager."""
    csi = (pv.get("spec") or {}).get("csi") or {}
    attributes: dict[str, Any] = csi.get("volumeAttributes") or {}
    is_longhorns = csi.get("driver") == "driver.longhorn.io" and bool(csi.get("volumeHandle"))
    return is_longhorns and attributes.get("dataLocality") == "strict-local" and not _has_share_manager(claim, pv)


def _has_share_manager(claim: Json, pv: Json) -> bool:
    """Longhorn serves a volume over NFS if it is ReadWriteMany or ReadOnlyMany, and neither migratable nor Block."""
    claim_spec, pv_spec = claim.get("spec") or {}, pv.get("spec") or {}
    csi = pv_spec.get("csi") or {}
    attributes: dict[str, Any] = csi.get("volumeAttributes") or {}
    return (
        not {"ReadWriteMany", "ReadOnlyMany"}.isdisjoint(claim_spec.get("accessModes") or [])
        and csi.get("driver") == "driver.longhorn.io"
        and bool(csi.get("volumeHandle"))
        and attributes.get("migratable") not in ("1", "t", "T", "true", "TRUE", "True")
        and "Block" not in (claim_spec.get("volumeMode"), pv_spec.get("volumeMode"))
    )


def _alive(pod: Json) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return (
        labels.get("longhorn.io/component") == "share-manager"
        and not pod["metadata"].get("deletionTimestamp")
        and ((pod.get("status") or {}).get("phase") or "Pending") in ("Pending", "Running")
    )


def _ready(thing: Json) -> bool:
    conditions = (thing.get("status") or {}).get("conditions") or []
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
