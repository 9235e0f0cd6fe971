"""What a plugin is asked about: one incoming pod, one node and one volume, without any other pod."""

from __future__ import annotations

from typing import Any

from msgspec import convert
from support.objects import builders

from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.plugins.volumes import ClaimVolume
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.state.snapshot import SnapshotUnavailable

Object = dict[str, Any]


def cycle_of(*bound: ClaimVolume, **spec: Any) -> CycleState:
    """The state of a virt-launcher pod with these bound claims and these fields of its spec."""
    pod = convert(builders.virt_launcher_pod(**spec), Pod)
    return CycleState(pod, "vms", SnapshotUnavailable("for a test"), bound)


def node_of(object_: Object, **counted: Any) -> NodeInfo:
    """The node of this Node object; `counted` are other fields of NodeInfo."""
    return NodeInfo(convert(object_, Node), **counted)


def volume_of(*, of_one_pod: bool = False, **parts: Any) -> ClaimVolume:
    """The claim `disk`, bound to the PersistentVolume `pv` with these parts."""
    volume = convert(builders.persistent_volume("pv", claim="disk", **parts), PersistentVolume)
    return ClaimVolume("disk", volume, of_one_pod=of_one_pod)


NO_SPEC = ClaimVolume("disk", convert({"metadata": {"name": "pv"}}, PersistentVolume))
"""A claim whose PersistentVolume tells nothing."""
