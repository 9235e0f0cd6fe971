"""The kinds that core reads: where the API server has them, and what becomes of their JSON."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Final

from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.longhorn import LABEL_LONGHORN_COMPONENT, LONGHORN_API_VERSION, SHARE_MANAGER
from webhook.core.view import Kind
from webhook.kube.informer.resource import Resource
from webhook.kube.records.claims import WireClaim, build_claim, keep_claim
from webhook.kube.records.longhorn import (
    WireAttachment,
    WireShareManager,
    build_attachment,
    build_share_manager,
    keep_attachment,
    keep_share_manager,
)
from webhook.kube.records.nodes import (
    Nodes,
    WireCSINode,
    WireLonghornNode,
    WireNode,
    build_csi_node,
    build_longhorn_node,
    keep_csi_node,
    keep_longhorn_node,
    keep_node,
)
from webhook.kube.records.pods import WirePod, build, keep
from webhook.kube.records.share_manager_pods import WireShareManagerPod, build_pod, keep_pod, pod_key
from webhook.kube.records.volumes import ByHandle, WireVolume, build_volume, keep_volume
from webhook.kube.scheduler_cache.assumed_pods import Pods

SELECTS_VIRT_LAUNCHERS: Final = f"{LABEL_APP}={VIRT_LAUNCHER}"
OWN_NAMESPACE: Final = "kubevirt-coschedule"  # of manifests/, for a process that runs in no pod


class WatchedPods(StrEnum):
    """Which pods are watched, cluster-wide."""

    ALL = "all"
    VIRT_LAUNCHER = "virt-launcher"
    NONE = "none"


def resources(
    longhorn_namespace: str, pods: WatchedPods = WatchedPods.ALL, own_namespace: str = OWN_NAMESPACE
) -> tuple[Resource, ...]:
    """Every kind that core reads; Longhorn's own from its namespace. Our own pods are in `own_namespace`."""
    longhorn = f"/apis/{LONGHORN_API_VERSION}"
    return (
        Resource(
            kind=Kind.PERSISTENT_VOLUME_CLAIM,
            title="persistentvolumeclaims",
            prefix="/api/v1",
            plural="persistentvolumeclaims",
            namespaced=True,
            wire=WireClaim,
            keep=keep_claim,
            build=build_claim,
        ),
        Resource(
            kind=Kind.PERSISTENT_VOLUME,
            title="persistentvolumes",
            prefix="/api/v1",
            plural="persistentvolumes",
            wire=WireVolume,
            keep=keep_volume,
            build=build_volume,
            index=ByHandle,
        ),
        Resource(
            kind=Kind.NODE,
            title="nodes",
            prefix="/api/v1",
            plural="nodes",
            wire=WireNode,
            keep=keep_node,
            page_objects=50,  # 30 KB each, with their images and labels
            build=lambda _, node: node,
            index=Nodes,
        ),
        Resource(
            kind=Kind.SHARE_MANAGER,
            title="sharemanagers.longhorn.io",
            prefix=longhorn,
            plural="sharemanagers",
            namespace=longhorn_namespace,
            wire=WireShareManager,
            keep=keep_share_manager,
            build=build_share_manager,
        ),
        Resource(
            kind=Kind.LONGHORN_NODE,
            title="nodes.longhorn.io",
            prefix=longhorn,
            plural="nodes",
            namespace=longhorn_namespace,
            wire=WireLonghornNode,
            keep=keep_longhorn_node,
            build=build_longhorn_node,
        ),
        Resource(
            kind=Kind.SHARE_MANAGER_POD,
            title="share-manager pods",
            prefix="/api/v1",
            plural="pods",
            namespace=longhorn_namespace,
            selector=f"{LABEL_LONGHORN_COMPONENT}={SHARE_MANAGER}",
            name_key=pod_key,
            wire=WireShareManagerPod,
            keep=keep_pod,
            build=build_pod,
        ),
        Resource(
            kind=Kind.VIRT_LAUNCHER_POD,
            title="pods" if pods is WatchedPods.ALL else "virt-launcher pods",
            prefix="/api/v1",
            plural="pods",
            namespaced=True,
            selector="" if pods is WatchedPods.ALL else SELECTS_VIRT_LAUNCHERS,
            fields="status.phase!=Succeeded,status.phase!=Failed",  # kube-scheduler's own: the others take no room
            wire=WirePod,
            keep=keep,
            build=build,
            page_objects=100,  # 20 KB each
            index=partial(Pods, own_namespace),
            watched=pods is not WatchedPods.NONE,
        ),
        Resource(
            kind=Kind.CSI_NODE,
            title="csinodes",
            prefix="/apis/storage.k8s.io/v1",
            plural="csinodes",
            wire=WireCSINode,
            keep=keep_csi_node,
            build=build_csi_node,
            watched=pods is WatchedPods.ALL,
        ),
        Resource(
            kind=Kind.VOLUME_ATTACHMENT,
            title="volumeattachments.longhorn.io",
            prefix=longhorn,
            plural="volumeattachments",
            namespace=longhorn_namespace,
            wire=WireAttachment,
            keep=keep_attachment,
            build=build_attachment,
            watched=False,
        ),
    )
