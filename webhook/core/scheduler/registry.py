"""The plugins that the webhook answers for, by their upstream names, in the order in which it asks them.

Upstream: pkg/scheduler/framework/plugins/registry.go. kube-scheduler rejects a node if one filter plugin does, so that
the order decides only which reason is reported. webhook.core.placement.feasibility asks, and adds the rules that are
not plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.core.scheduler.framework import FilterPlugin, PreEnqueuePlugin, PreFilterPlugin, VolumeFilterPlugin
from webhook.core.scheduler.plugins import (
    dynamic_resources,
    inter_pod_affinity,
    node_affinity,
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

PRE_ENQUEUE: Final[Mapping[str, PreEnqueuePlugin]] = {"SchedulingGates": scheduling_gates}
PRE_FILTER: Final[Mapping[str, PreFilterPlugin]] = {
    "InterPodAffinity": inter_pod_affinity,
    "PodTopologySpread": pod_topology_spread,
    "DynamicResources": dynamic_resources,
}
FILTER: Final[Mapping[str, FilterPlugin]] = {
    "NodeUnschedulable": node_unschedulable,
    "TaintToleration": taint_toleration,
    "NodeAffinity": node_affinity,
    "NodeResourcesFit": node_resources_fit,
    "NodePorts": node_ports,
    "InterPodAffinity": inter_pod_affinity,
    "PodTopologySpread": pod_topology_spread,
}
VOLUME_FILTER: Final[Mapping[str, VolumeFilterPlugin]] = {
    "VolumeBinding": volume_binding,
    "VolumeZone": volume_zone,
    "NodeVolumeLimits": node_volume_limits,
}
