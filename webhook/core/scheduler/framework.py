"""The interface of a plugin: the functions of a module of webhook.core.scheduler.plugins, and when they are called.

Upstream: pkg/scheduler/framework/interface.go. A plugin is a module. It offers the functions of each extension point at
which it can reject a pod. Its docstring names the upstream file that it follows, its invariant, and what is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.incoming_pod import ClaimVolume
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.status import Status

PreEnqueue: TypeAlias = Callable[[CycleState], Status]
"""`pre_enqueue` returns Rejected as long as kube-scheduler keeps the pod out of its queue."""

PreFilter: TypeAlias = Callable[[CycleState], Status]
"""`pre_filter` returns Unknown if `filter_node` can't be asked about this pod, or if there is no `filter_node`."""

Filter: TypeAlias = Callable[[CycleState, NodeInfo], Status]
"""`filter_node` returns whether kube-scheduler would accept the node for the pod, beside the pods that are there.

NodeAffinity has a second filter of this type, `filter_by_labels`, for `spec.nodeSelector` alone. The registry asks it
earlier than `filter_node`, so that the reasons keep their order.
"""

VolumeFilter: TypeAlias = Callable[[ClaimVolume, NodeInfo], Status]
"""`filter_volume` returns whether kube-scheduler would accept the node for a pod that uses this volume.

Upstream has no such extension point: Filter asks about all volumes. The webhook asks all these plugins about one volume
before it asks about the next, so that the reason names the first volume that can't be used.
"""
