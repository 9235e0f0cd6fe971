"""What the caches follow: each kind that core reads, with its records. Where the kinds are: webhook.objects.kinds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from webhook.core.api.meta import CLUSTER_AUTOSCALER_STATUS
from webhook.core.api.virtual_machine import VirtualMachine, VirtualMachineInstance
from webhook.core.large_pod import LargePod
from webhook.core.placement.replica_share import OWN_NAMESPACE
from webhook.core.view import Kind
from webhook.kube.informer.resource import Indexer, Resource
from webhook.kube.records import claims, nodes, parts, share_manager_pods, virtual_machines, volumes
from webhook.kube.records import pods as pod_records
from webhook.kube.scheduler_cache.assumed_pods import Pods
from webhook.objects.kinds import CSI_NODE, OF_CORE, UNFINISHED_POD


def resources(
    longhorn_namespace: str,
    own_namespace: str = OWN_NAMESPACE,
    *,
    autoscaler: bool = True,
    kubevirt: bool = True,
) -> tuple[Resource, ...]:
    """Return the resource of every kind that core reads.

    Longhorn's kinds are read from `longhorn_namespace` only. The webhook's own pods are in `own_namespace`.
    `autoscaler`: whether the ConfigMap of cluster-autoscaler is watched. `kubevirt`: whether the VirtualMachines and
    VirtualMachineInstances are.
    """

    def of(kind: Kind, transform: Callable[[Any], Any], to_object: Callable[[Any, Any], Any], **more: Any) -> Resource:
        row = UNFINISHED_POD if kind is Kind.VIRT_LAUNCHER_POD else OF_CORE[kind]
        where: dict[str, Any] = {
            "wire": row.type,
            "title": row.title,
            "prefix": row.prefix,
            "plural": row.plural,
            "namespace": longhorn_namespace if row.of_longhorn else "",
            "namespaced": row.namespaced and not row.of_longhorn,
            "selector": row.selector,
            "fields": row.fields,
        }
        return Resource(kind=kind, transform=transform, to_object=to_object, **{**where, **more})

    return (
        of(Kind.PERSISTENT_VOLUME_CLAIM, claims.transform, claims.to_object),
        of(
            Kind.PERSISTENT_VOLUME,
            volumes.transform,
            volumes.to_object,
            wire=volumes.WireVolume,
            index=partial(Indexer, volumes.by_handle),
        ),
        of(
            Kind.NODE,
            nodes.transform,
            nodes.to_object,
            page_objects=50,  # 30 KB each, with their images and labels
            index=nodes.NodeIndex,
        ),
        of(Kind.SHARE_MANAGER, parts.share_manager_record, parts.to_share_manager),
        of(
            Kind.LONGHORN_NODE,
            parts.longhorn_conditions,
            parts.to_longhorn_node,
            index=partial(Indexer, parts.by_lack),
        ),
        of(
            Kind.SHARE_MANAGER_POD,
            share_manager_pods.transform,
            share_manager_pods.to_object,
            wire=share_manager_pods.WireShareManagerPod,
            name_key=share_manager_pods.pod_key,
        ),
        of(
            Kind.VIRT_LAUNCHER_POD,
            pod_records.transform,
            pod_records.to_object,
            wire=pod_records.WirePod,
            large=LargePod,
            page_objects=100,  # 20 KB each
            index=partial(Pods, own_namespace, longhorn_namespace),
        ),
        of(
            Kind.CSI_NODE,
            parts.csi_drivers,
            parts.to_csi_drivers,
            title=CSI_NODE.plural,
        ),
        of(Kind.NAMESPACE, parts.namespace_label, parts.to_namespace),
        of(
            Kind.CLUSTER_AUTOSCALER_STATUS,
            parts.nothing,
            parts.to_config_map,
            title=CLUSTER_AUTOSCALER_STATUS,
            watched=autoscaler,
        ),
        of(
            Kind.VIRTUAL_MACHINE,
            virtual_machines.transform_vm,
            virtual_machines.to_vm,
            wire=VirtualMachine,
            page_objects=100,  # 10 KB each
            index=partial(Indexer, virtual_machines.by_named_claim),
            watched=kubevirt,
        ),
        of(
            Kind.VIRTUAL_MACHINE_INSTANCE,
            virtual_machines.transform_vmi,
            virtual_machines.to_vmi,
            wire=VirtualMachineInstance,
            page_objects=100,  # 20 KB each
            index=partial(Indexer, virtual_machines.by_named_claim),
            watched=kubevirt,
        ),
        of(
            Kind.VOLUME_ATTACHMENT,
            parts.attachment_spec,
            parts.to_attachment,
            watched=False,
        ),
    )
