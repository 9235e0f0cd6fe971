"""The interface of a plugin: the functions of a module of webhook.core.scheduler.plugins, and when they are called.

Upstream: pkg/scheduler/framework/interface.go. A plugin is a module. It offers the functions of each extension point at
which it can reject a pod. Its docstring names the upstream file that it follows, its invariant, and what is not known.
"""

from __future__ import annotations

from typing import Protocol

from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.incoming_pod import ClaimVolume
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.status import Status


class PreEnqueuePlugin(Protocol):
    """A plugin that can keep the pod out of kube-scheduler's queue."""

    def pre_enqueue(self, cycle: CycleState) -> Status:
        """Return Rejected as long as kube-scheduler ignores the pod."""
        ...


class PreFilterPlugin(Protocol):
    """A plugin that can't be evaluated for some pods, whatever the node."""

    def pre_filter(self, cycle: CycleState) -> Status:
        """Return Unknown if `filter_node` can't be asked about this pod, or if there is no `filter_node`."""
        ...


class FilterPlugin(Protocol):
    """A plugin that can reject a node for a pod."""

    def filter_node(self, cycle: CycleState, node: NodeInfo) -> Status:
        """Return whether kube-scheduler would accept the node for `cycle.incoming`, beside the pods that are there."""
        ...


class VolumeFilterPlugin(Protocol):
    """A plugin that can reject a node for one volume of a pod.

    Upstream has no such extension point: Filter asks about all volumes. The webhook asks all these plugins about one
    volume before it asks about the next, so that the reason names the first volume that can't be used.
    """

    def filter_volume(self, volume: ClaimVolume, node: NodeInfo) -> Status:
        """Return whether kube-scheduler would accept the node for a pod that uses this volume."""
        ...
