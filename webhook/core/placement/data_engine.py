"""Longhorn's data engine v2, which a node may be without: can a pod's volumes be attached on that node?

A node that disables v2 has no instance manager for it (longhorn-manager controller/node_controller.go). Longhorn does
not refuse the attach (manager/volume.go, Attach): the volume just never comes up there, and the pod waits for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from webhook.core.api.longhorn import LABEL_LONGHORN_COMPONENT, LONGHORN_CSI_DRIVER, SHARE_MANAGER
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.reasons import Reason, Why

_DISABLES_V2: Final = "node.longhorn.io/disable-v2-data-engine"  # types/types.go, NodeDisableV2DataEngineLabelKey
_V2: Final = "v2"


def refusal(node: Node, name: str, pod: Pod, volumes: Iterable[tuple[PersistentVolume, str | None]]) -> Why | None:
    """Why a volume can't be attached on this node, where the pod would need it there; None where nothing is known.

    Args:
        node: the node, which is called `name`.
        name: its name.
        pod: the pod that may come there. A share-manager's own says itself what it serves.
        volumes: those of its claims, each with the node of the share-manager that serves it, where it needs to be
            attached; None for the pod's own node.
    """
    if node.metadata.label(_DISABLES_V2) != "true":
        return None
    needed = [volume for volume, served_from in volumes if served_from in (None, name)]
    volume = next((handle for each in needed if (handle := _v2_handle(each))), None) or _served_by(pod)
    return Reason.DATA_ENGINE_DISABLED.why(node=name, volume=volume) if volume else None


def _v2_handle(volume: PersistentVolume) -> str | None:
    """The Longhorn volume behind a PersistentVolume, where it is one of v2; without the attribute it is of v1."""
    csi = volume.spec.csi if volume.spec else None
    if csi is None or csi.driver != LONGHORN_CSI_DRIVER or (csi.volume_attributes or {}).get("dataEngine") != _V2:
        return None
    return csi.volume_handle


def _served_by(pod: Pod) -> str | None:
    """The v2 volume that a share-manager's pod is for (controller/share_manager_controller.go, createPodManifest)."""
    if pod.metadata.label(LABEL_LONGHORN_COMPONENT) != SHARE_MANAGER:
        return None
    served = (each for each in pod.spec.containers or () if each.option("--data-engine") == _V2)
    return next((each.option("--volume") for each in served), None)
