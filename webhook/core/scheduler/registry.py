"""The plugins that the webhook answers for, in the order in which it asks them.

Upstream: pkg/scheduler/framework/interface.go and plugins/registry.go. A plugin is a module under its upstream name,
with a function for each extension point at which it can reject a pod. The function returns why kube-scheduler rejects
the pod or the node, or why that is not known: the webhook then prefers the node and does not require it.
kube-scheduler rejects a node if one filter plugin does, so that the order decides only which reason is reported.
webhook.core.placement.feasibility walks over these tables from left to right, and adds the rules that are not plugins.
A function that is not here is not asked. Invariant: a plugin never returns None if kube-scheduler would reject the same
pod for the same pods and nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from webhook.core.reasons import Why
from webhook.core.scheduler.cycle_state import ClaimVolume, CycleState
from webhook.core.scheduler.plugins import (
    dynamic_resources,
    gang_scheduling,
    inter_pod_affinity,
    node_affinity,
    node_declared_features,
    node_ports,
    node_resources_fit,
    node_unschedulable,
    node_volume_limits,
    pod_topology_spread,
    scheduling_gates,
    taint_toleration,
    volume_binding,
    volume_restrictions,
    volume_zone,
)
from webhook.core.scheduler.state.node_info import NodeInfo

PodFilter: TypeAlias = Callable[[CycleState], Why | None]
"""Why kube-scheduler keeps the pod out of its queue, or which rule of the pod the webhook can't evaluate."""

Filter: TypeAlias = Callable[[CycleState, NodeInfo], Why | None]
"""Why kube-scheduler would reject the node for the pod, beside the pods that are there."""

VolumeFilter: TypeAlias = Callable[[ClaimVolume, NodeInfo], Why | None]
"""Why kube-scheduler would reject the node for a pod that uses this volume; upstream Filter asks about all."""

PRE_ENQUEUE: Final[tuple[PodFilter, ...]] = (scheduling_gates.pre_enqueue, gang_scheduling.pre_enqueue)
PRE_FILTER: Final[tuple[PodFilter, ...]] = (
    inter_pod_affinity.pre_filter,
    pod_topology_spread.pre_filter,
    dynamic_resources.pre_filter,
    node_declared_features.pre_filter,
    volume_restrictions.pre_filter,
    node_affinity.pre_filter,
)

# What the Node object and the incoming pod decide.
FILTER_VOLUME: Final[tuple[VolumeFilter, ...]] = (volume_binding.filter_volume, volume_zone.filter_volume)
FILTER_NODE: Final[tuple[Filter, ...]] = (
    node_unschedulable.filter_node,
    taint_toleration.filter_node,
    node_affinity.filter_by_labels,
)
FILTER_BY_AFFINITY: Final[tuple[Filter, ...]] = (node_affinity.filter_node,)

# What the other pods of the node decide.
FILTER_BY_REQUESTS: Final[tuple[Filter, ...]] = (node_resources_fit.filter_node, node_ports.filter_node)
FILTER_VOLUME_LIMITS: Final[tuple[VolumeFilter, ...]] = (node_volume_limits.filter_volume,)
FILTER_BETWEEN_PODS: Final[tuple[Filter, ...]] = (inter_pod_affinity.filter_node,)
