"""The kinds that core reads: where the API server has them, and what becomes of their JSON."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from sys import intern
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.longhorn import LABEL_LONGHORN_COMPONENT, LONGHORN_API_VERSION, SHARE_MANAGER
from webhook.core.api.meta import Key
from webhook.core.view import Kind
from webhook.kube import records
from webhook.kube.index import ByHandle, Index, Nodes
from webhook.kube.pods import Pods, WirePod, build, keep

SELECTS_VIRT_LAUNCHERS: Final = f"{LABEL_APP}={VIRT_LAUNCHER}"
OWN_NAMESPACE: Final = "kubevirt-coschedule"  # of manifests/, for a process that runs in no pod
BY_NAMESPACE: Final = (Kind.PERSISTENT_VOLUME_CLAIM, Kind.VIRT_LAUNCHER_POD)


class Resource(Struct, frozen=True, kw_only=True):
    """One kind at the API server.

    Attributes:
        title: resource and group, as kubectl names them.
        prefix: path of the API group and version.
        plural: the resource's name in paths.
        namespace: the only namespace it is read from; empty for all namespaces, or a kind that has none.
        selector: label selector of list and watch; `fields`: their field selector.
        wire: what one object decodes to.
        keep: wire object -> record.
        build: cache key, record -> core's object.
        index: makes what the cache also keeps of its objects; None for nothing.
        watched: False for what is never cached, but read anew each time.
        page_objects: how many a page of a list has; decoding it takes a few ms, in which nothing else is done.
    """

    kind: Kind
    title: str
    prefix: str
    plural: str
    wire: type[Any]
    keep: Callable[[Any], Any]
    build: Callable[[Any, Any], Any]
    namespace: str = ""
    selector: str = ""
    fields: str = ""
    page_objects: int = 500  # client-go's
    index: Callable[[], Index] | None = None
    watched: bool = True

    @property
    def collection(self) -> str:
        """Path of list and watch."""
        return "/".join(filter(None, (self.prefix, _within(self.namespace), self.plural)))

    def item(self, key: Key) -> str:
        """Path of one object."""
        within = _within(self.namespace or key.namespace)
        return "/".join(filter(None, (self.prefix, within, self.plural, quote(key.name, safe=""))))

    def key(self, key: Key) -> str:
        """What it is kept under: its name; NAMESPACE/NAME where it is in any; a share-manager's pod by its volume."""
        if self.kind in BY_NAMESPACE:
            return records.claim_key(*key)
        return records.pod_key(key.name) if self.kind is Kind.SHARE_MANAGER_POD else key.name

    def key_of(self, meta: Any) -> str:
        """`key` of the object that has this metadata: one string for all that have the same, as a volume's have."""
        if self.kind in BY_NAMESPACE:
            key = records.claim_key(meta.namespace, meta.name)
            return intern(key) if self.kind is Kind.PERSISTENT_VOLUME_CLAIM else key  # nothing else is called as a pod
        return intern(self.key(meta))


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
            wire=records.WireClaim,
            keep=records.keep_claim,
            build=records.build_claim,
        ),
        Resource(
            kind=Kind.PERSISTENT_VOLUME,
            title="persistentvolumes",
            prefix="/api/v1",
            plural="persistentvolumes",
            wire=records.WireVolume,
            keep=records.keep_volume,
            build=records.build_volume,
            index=ByHandle,
        ),
        Resource(
            kind=Kind.NODE,
            title="nodes",
            prefix="/api/v1",
            plural="nodes",
            wire=records.WireNode,
            keep=records.keep_node,
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
            wire=records.WireShareManager,
            keep=records.keep_share_manager,
            build=records.build_share_manager,
        ),
        Resource(
            kind=Kind.LONGHORN_NODE,
            title="nodes.longhorn.io",
            prefix=longhorn,
            plural="nodes",
            namespace=longhorn_namespace,
            wire=records.WireLonghornNode,
            keep=records.keep_longhorn_node,
            build=records.build_longhorn_node,
        ),
        Resource(
            kind=Kind.SHARE_MANAGER_POD,
            title="share-manager pods",
            prefix="/api/v1",
            plural="pods",
            namespace=longhorn_namespace,
            selector=f"{LABEL_LONGHORN_COMPONENT}={SHARE_MANAGER}",
            wire=records.WirePod,
            keep=records.keep_pod,
            build=records.build_pod,
        ),
        Resource(
            kind=Kind.VIRT_LAUNCHER_POD,
            title="pods" if pods is WatchedPods.ALL else "virt-launcher pods",
            prefix="/api/v1",
            plural="pods",
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
            wire=records.WireCSINode,
            keep=records.keep_csi_node,
            build=records.build_csi_node,
            watched=pods is WatchedPods.ALL,
        ),
        Resource(
            kind=Kind.VOLUME_ATTACHMENT,
            title="volumeattachments.longhorn.io",
            prefix=longhorn,
            plural="volumeattachments",
            namespace=longhorn_namespace,
            wire=records.WireAttachment,
            keep=records.keep_attachment,
            build=records.build_attachment,
            watched=False,
        ),
    )


def _within(namespace: str) -> str:
    return f"namespaces/{quote(namespace, safe='')}" if namespace else ""
