"""The table of resources: each kind that core reads."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Final

from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.longhorn import LABEL_LONGHORN_COMPONENT, LONGHORN_API_VERSION, SHARE_MANAGER
from webhook.core.api.meta import CLUSTER_AUTOSCALER_STATUS
from webhook.core.api.virtual_machine import KUBEVIRT_API_VERSION
from webhook.core.placement.replica_share import OWN_NAMESPACE
from webhook.core.view import Kind
from webhook.kube.informer.index import Indexer
from webhook.kube.informer.resource import Resource
from webhook.kube.records import claims, config_maps, csi_nodes, namespaces, nodes, virtual_machines, volumes
from webhook.kube.records import pods as pod_records
from webhook.kube.records.longhorn import longhorn_nodes, share_manager_pods, share_managers, volume_attachments
from webhook.kube.scheduler_cache.assumed_pods import Pods

SELECTS_VIRT_LAUNCHERS: Final = f"{LABEL_APP}={VIRT_LAUNCHER}"


class WatchedPods(StrEnum):
    """Which pods are watched, in all namespaces."""

    ALL = "all"
    VIRT_LAUNCHER = "virt-launcher"
    NONE = "none"


def resources(
    longhorn_namespace: str,
    pods: WatchedPods = WatchedPods.ALL,
    own_namespace: str = OWN_NAMESPACE,
    *,
    autoscaler: bool = True,
    kubevirt: bool = True,
) -> tuple[Resource, ...]:
    """Return the resource of every kind that core reads.

    Longhorn's kinds are read from `longhorn_namespace` only. `pods` says which pods are watched. The webhook's own pods
    are in `own_namespace`. `autoscaler`: whether the ConfigMap of cluster-autoscaler is watched.
    `kubevirt`: whether the VirtualMachines and VirtualMachineInstances are.
    """
    longhorn, kubevirt_prefix = f"/apis/{LONGHORN_API_VERSION}", f"/apis/{KUBEVIRT_API_VERSION}"
    return (
        Resource(
            kind=Kind.PERSISTENT_VOLUME_CLAIM,
            title="persistentvolumeclaims",
            prefix="/api/v1",
            plural="persistentvolumeclaims",
            namespaced=True,
            wire=claims.WireClaim,
            transform=claims.transform,
            to_object=claims.to_object,
        ),
        Resource(
            kind=Kind.PERSISTENT_VOLUME,
            title="persistentvolumes",
            prefix="/api/v1",
            plural="persistentvolumes",
            wire=volumes.WireVolume,
            transform=volumes.transform,
            to_object=volumes.to_object,
            index=partial(Indexer, volumes.by_handle),
        ),
        Resource(
            kind=Kind.NODE,
            title="nodes",
            prefix="/api/v1",
            plural="nodes",
            wire=nodes.WireNode,
            transform=nodes.transform,
            to_object=nodes.to_object,
            page_objects=50,  # 30 KB each, with their images and labels
            index=nodes.NodeIndex,
        ),
        Resource(
            kind=Kind.SHARE_MANAGER,
            title="sharemanagers.longhorn.io",
            prefix=longhorn,
            plural="sharemanagers",
            namespace=longhorn_namespace,
            wire=share_managers.WireShareManager,
            transform=share_managers.transform,
            to_object=share_managers.to_object,
        ),
        Resource(
            kind=Kind.LONGHORN_NODE,
            title="nodes.longhorn.io",
            prefix=longhorn,
            plural="nodes",
            namespace=longhorn_namespace,
            wire=longhorn_nodes.WireLonghornNode,
            transform=longhorn_nodes.transform,
            to_object=longhorn_nodes.to_object,
        ),
        Resource(
            kind=Kind.SHARE_MANAGER_POD,
            title="share-manager pods",
            prefix="/api/v1",
            plural="pods",
            namespace=longhorn_namespace,
            selector=f"{LABEL_LONGHORN_COMPONENT}={SHARE_MANAGER}",
            name_key=share_manager_pods.pod_key,
            wire=share_manager_pods.WireShareManagerPod,
            transform=share_manager_pods.transform,
            to_object=share_manager_pods.to_object,
        ),
        Resource(
            kind=Kind.VIRT_LAUNCHER_POD,
            title="pods" if pods is WatchedPods.ALL else "virt-launcher pods",
            prefix="/api/v1",
            plural="pods",
            namespaced=True,
            selector="" if pods is WatchedPods.ALL else SELECTS_VIRT_LAUNCHERS,
            fields="status.phase!=Succeeded,status.phase!=Failed",  # as kube-scheduler does: other pods use no node
            wire=pod_records.WirePod,
            transform=pod_records.transform,
            to_object=pod_records.to_object,
            page_objects=100,  # 20 KB each
            index=partial(Pods, own_namespace),
            watched=pods is not WatchedPods.NONE,
        ),
        Resource(
            kind=Kind.CSI_NODE,
            title="csinodes",
            prefix="/apis/storage.k8s.io/v1",
            plural="csinodes",
            wire=csi_nodes.WireCSINode,
            transform=csi_nodes.transform,
            to_object=csi_nodes.to_object,
            watched=pods is WatchedPods.ALL,
        ),
        Resource(
            kind=Kind.NAMESPACE,
            title="namespaces",
            prefix="/api/v1",
            plural="namespaces",
            wire=namespaces.WireNamespace,
            transform=namespaces.transform,
            to_object=namespaces.to_object,
        ),
        Resource(
            kind=Kind.CLUSTER_AUTOSCALER_STATUS,
            title=CLUSTER_AUTOSCALER_STATUS,
            prefix="/api/v1",
            plural="configmaps",
            namespaced=True,
            # A rule with resourceNames allows list and watch with this selector only (apiserver requestinfo.go).
            fields=f"metadata.name={CLUSTER_AUTOSCALER_STATUS}",
            wire=config_maps.WireConfigMap,
            transform=config_maps.transform,
            to_object=config_maps.to_object,
            watched=autoscaler,
        ),
        Resource(
            kind=Kind.VIRTUAL_MACHINE,
            title="virtualmachines.kubevirt.io",
            prefix=kubevirt_prefix,
            plural="virtualmachines",
            namespaced=True,
            wire=virtual_machines.WireVirtualMachine,
            transform=virtual_machines.transform_vm,
            to_object=virtual_machines.to_vm,
            page_objects=100,  # 10 KB each
            index=partial(Indexer, virtual_machines.by_named_claim),
            watched=kubevirt,
        ),
        Resource(
            kind=Kind.VIRTUAL_MACHINE_INSTANCE,
            title="virtualmachineinstances.kubevirt.io",
            prefix=kubevirt_prefix,
            plural="virtualmachineinstances",
            namespaced=True,
            wire=virtual_machines.WireVirtualMachineInstance,
            transform=virtual_machines.transform_vmi,
            to_object=virtual_machines.to_vmi,
            page_objects=100,  # 20 KB each
            index=partial(Indexer, virtual_machines.by_named_claim),
            watched=kubevirt,
        ),
        Resource(
            kind=Kind.VOLUME_ATTACHMENT,
            title="volumeattachments.longhorn.io",
            prefix=longhorn,
            plural="volumeattachments",
            namespace=longhorn_namespace,
            wire=volume_attachments.WireAttachment,
            transform=volume_attachments.transform,
            to_object=volume_attachments.to_object,
            watched=False,
        ),
    )
