"""The table of what a bundle lists: each kind that `status` or `explain` reads."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from webhook.bundle import kept, virtual_machines
from webhook.core.api import longhorn, meta, node, storage
from webhook.core.api.kubevirt import VMI_KIND
from webhook.core.api.longhorn import LONGHORN_API_VERSION
from webhook.core.api.pod import Pod
from webhook.core.observe.reunite_messages import ReuniteEvent
from webhook.explain.api import names
from webhook.explain.api.longhorn import Volume
from webhook.explain.api.names import Type


class BundledKind(Struct, frozen=True, kw_only=True):
    """One kind: with which type it is decoded, and which part of its objects is listed.

    `longhorn`: only those of Longhorn's namespace. `fields`: a field selector.
    """

    decoded: type[Any]
    type: Type
    longhorn: bool = False
    fields: str = ""


def _longhorn(kind: str, plural: str, decoded: type[Any]) -> BundledKind:
    type_ = Type(kind=kind, plural=plural, api_version=LONGHORN_API_VERSION, product="Longhorn")
    return BundledKind(type=type_, decoded=decoded, longhorn=True)


def _core(kind: str, plural: str, decoded: type[Any], fields: str = "") -> BundledKind:
    return BundledKind(type=Type(kind=kind, plural=plural, api_version="v1"), decoded=decoded, fields=fields)


KINDS = (
    _core("Node", "nodes", node.Node),
    _core("Pod", "pods", Pod),
    _core("PersistentVolumeClaim", "persistentvolumeclaims", storage.PersistentVolumeClaim),
    BundledKind(type=names.PERSISTENT_VOLUME, decoded=kept.PersistentVolume),
    BundledKind(type=names.STORAGE_CLASS, decoded=kept.NamedStorageClass),
    BundledKind(type=Type(kind="CSINode", plural="csinodes", api_version="storage.k8s.io/v1"), decoded=node.CSINode),
    _core("Namespace", "namespaces", meta.Namespace),
    _core("ConfigMap", "configmaps", meta.ConfigMap, f"metadata.name={meta.CLUSTER_AUTOSCALER_STATUS}"),
    BundledKind(type=names.WEBHOOK_CONFIGURATION, decoded=kept.WebhookConfiguration),
    BundledKind(type=names.VIRTUAL_MACHINE, decoded=virtual_machines.KeptVirtualMachine),
    BundledKind(type=names.VIRTUAL_MACHINE_INSTANCE, decoded=virtual_machines.KeptVMI),
    _longhorn("ShareManager", "sharemanagers", longhorn.ShareManager),
    _longhorn("Node", "nodes", longhorn.LonghornNode),
    _longhorn("VolumeAttachment", "volumeattachments", longhorn.VolumeAttachment),
    _longhorn("Volume", "volumes", Volume),
    _longhorn("Setting", "settings", kept.NamedSetting),
    _core("Event", "events", ReuniteEvent, f"involvedObject.kind={VMI_KIND}"),
)
