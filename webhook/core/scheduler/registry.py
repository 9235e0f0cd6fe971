"""The plugins that the webhook answers for, by their upstream names, in the order in which it asks them.

Upstream: pkg/scheduler/framework/interface.go and plugins/registry.go. A plugin is a module, with a function for each
extension point at which it can reject a pod. kube-scheduler rejects a node if one filter plugin does, so that the order
decides only which reason is reported. webhook.core.placement.feasibility walks over these tables from top to bottom,
and adds the rules that are not plugins. A function that has no row here is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.plugins import (
    dynamic_resources,
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
    volume_zone,
)
from webhook.core.scheduler.state.incoming_pod import ClaimVolume
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.status import Status

PreEnqueue: TypeAlias = Callable[[CycleState], Status]
"""Rejected as long as kube-scheduler keeps the pod out of its queue."""

PreFilter: TypeAlias = Callable[[CycleState], Status]
"""Unknown if the filters can't be asked about this pod, or if the plugin has none."""

Filter: TypeAlias = Callable[[CycleState, NodeInfo], Status]
"""Whether kube-scheduler would accept the node for the pod, beside the pods that are there."""

VolumeFilter: TypeAlias = Callable[[ClaimVolume, NodeInfo], Status]
"""Whether kube-scheduler would accept the node for a pod that uses this volume; upstream Filter asks about all."""

PRE_ENQUEUE: Final[Mapping[str, PreEnqueue]] = {"SchedulingGates": scheduling_gates.pre_enqueue}
PRE_FILTER: Final[Mapping[str, PreFilter]] = {
    "InterPodAffinity": inter_pod_affinity.pre_filter,
    "PodTopologySpread": pod_topology_spread.pre_filter,
    "DynamicResources": dynamic_resources.pre_filter,
    "NodeDeclaredFeatures": node_declared_features.pre_filter,
}

# What the Node object and the incoming pod decide.
FILTER_NODE: Final[Mapping[str, Filter]] = {
    "NodeUnschedulable": node_unschedulable.filter_node,
    "TaintToleration": taint_toleration.filter_node,
    "NodeAffinity": node_affinity.filter_by_labels,
}
FILTER_VOLUME: Final[Mapping[str, VolumeFilter]] = {
    "VolumeBinding": volume_binding.filter_volume,
    "VolumeZone": volume_zone.filter_volume,
}
FILTER_BY_AFFINITY: Final[Mapping[str, Filter]] = {"NodeAffinity": node_affinity.filter_node}

# What the other pods of the node decide.
FILTER_BY_REQUESTS: Final[Mapping[str, Filter]] = {
    "NodeResourcesFit": node_resources_fit.filter_node,
    "NodePorts": node_ports.filter_node,
}
FILTER_VOLUME_LIMITS: Final[Mapping[str, VolumeFilter]] = {"NodeVolumeLimits": node_volume_limits.filter_volume}
FILTER_BETWEEN_PODS: Final[Mapping[str, Filter]] = {"InterPodAffinity": inter_pod_affinity.filter_node}
