"""What the caches follow: each kind that core reads, and what is stored of it. webhook.objects.kinds has the paths."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from webhook.core.api.meta import CLUSTER_AUTOSCALER_STATUS
from webhook.core.api.virtual_machine import VirtualMachine, VirtualMachineInstance
from webhook.core.placement.replica_share import OWN_NAMESPACE
from webhook.core.pod_limits import LargePod
from webhook.core.view import Kind
from webhook.kube.informer.store import Indexer, Resource
from webhook.kube.records import objects, pods, virt_launchers
from webhook.kube.scheduler_cache.assumed_pods import PodIndex
from webhook.objects.kinds import CSI_NODE, OF_CORE, UNFINISHED_POD


def resources(
    longhorn_namespace: str,
    own_namespace: str = OWN_NAMESPACE,
    *,
    autoscaler: bool = True,
) -> tuple[Resource, ...]:
    """Return the resource of every kind that core reads.

    Longhorn's kinds are read from `longhorn_namespace` only. The webhook's own pods are in `own_namespace`.
    `autoscaler`: whether the ConfigMap of cluster-autoscaler is watched.
    """

    def of(kind: Kind, transform: Callable[[Any], Any], **more: Any) -> Resource:
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
        return Resource(kind=kind, transform=transform, **{**where, **more})

    return (
        of(Kind.PERSISTENT_VOLUME_CLAIM, objects.claim),
        of(Kind.PERSISTENT_VOLUME, objects.volume, index=partial(Indexer, objects.by_handle)),
        of(Kind.NODE, objects.node, page_objects=50, index=objects.NodeIndex),  # 30 KB each, with images and labels
        of(Kind.SHARE_MANAGER, objects.share_manager),
        of(Kind.LONGHORN_NODE, objects.longhorn_node, index=partial(Indexer, objects.by_lack)),
        of(Kind.SHARE_MANAGER_POD, virt_launchers.share_manager_pod, wire=pods.WirePod),
        of(
            Kind.VIRT_LAUNCHER_POD,
            pods.transform,
            wire=pods.WirePod,
            large=LargePod,
            page_objects=100,  # 20 KB each
            index=partial(PodIndex, own_namespace, longhorn_namespace),
        ),
        of(Kind.CSI_NODE, objects.csi_drivers, title=CSI_NODE.plural),
        of(Kind.NAMESPACE, objects.namespace),
        of(
            Kind.CLUSTER_AUTOSCALER_STATUS,
            objects.config_map,
            title=CLUSTER_AUTOSCALER_STATUS,
            watched=autoscaler,
        ),
        of(
            Kind.VIRTUAL_MACHINE,
            objects.virtual_machine,
            wire=VirtualMachine,
            page_objects=100,  # 10 KB each
            index=partial(Indexer, objects.by_named_claim),
        ),
        of(
            Kind.VIRTUAL_MACHINE_INSTANCE,
            objects.virtual_machine_instance,
            wire=VirtualMachineInstance,
            page_objects=100,  # 20 KB each
            index=partial(Indexer, objects.by_named_claim),
        ),
        of(Kind.VOLUME_ATTACHMENT, lambda wire: wire, watched=False),
    )
