"""The webhook answers for each plugin that kube-scheduler has by default, or has a reason why it need not.

A plugin is evaluated node by node, or webhook.core.scheduler.cycle_state names it, or both: then the
table has the fields of the pod that are not evaluated.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from support.control_plane.rendering import ROOT

from webhook.core.scheduler import cycle_state

# kubernetes v1.37.2, pkg/scheduler/apis/config/v1/default_plugins.go, in its order; the last five by feature gates.
SOURCE: Final = "pkg/scheduler/apis/config/v1/default_plugins.go"
DEFAULT_PLUGINS: Final = (
    "SchedulingGates",
    "PrioritySort",
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "NodeDeclaredFeatures",
    "DeferredPodScheduling",
    "DynamicResources",
    "GangScheduling",
    "TopologyPlacementGenerator",
    "PodGroupPodsCount",
)
EVALUATED: Final = {
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "NodeVolumeLimits",
    "VolumeBinding",
    "InterPodAffinity",
}
"""webhook.core.placement.feasibility asks about each of them."""
NEEDS_NONE: Final[Mapping[str, str]] = {
    "PrioritySort": "orders pods, and rejects none",
    "NodeName": "is about pods that name their node, which the webhook leaves unchanged (NodeAlreadySet)",
    "DefaultPreemption": "is asked after all nodes were rejected",
    "NodeResourcesBalancedAllocation": "only scores",
    "ImageLocality": "only scores",
    "DefaultBinder": "binds, and rejects no node",
    "DeferredPodScheduling": "is about pods on a node whose resize was deferred",
    "TopologyPlacementGenerator": "is about pods of a scheduling group (GangScheduling)",
    "PodGroupPodsCount": "scores places for a scheduling group",
}


def test_each_default_plugin_is_answered_for() -> None:
    """A new one must get a rule with which no node is required, a function, or a reason. Nothing else is named."""
    never_required_for = set(re.findall(r'yield "(\w+)"', inspect.getsource(cycle_state)))
    answered = never_required_for | EVALUATED
    assert answered | NEEDS_NONE.keys() == set(DEFAULT_PLUGINS)
    assert not answered & NEEDS_NONE.keys()


def test_the_list_is_that_of_the_newest_kubernetes() -> None:
    """As far as its source is here: `make e2e` builds the control plane from it."""
    module = (ROOT / "tests/controlplane/kubernetes-1.37/go.mod").read_text(encoding="utf-8")
    version = re.search(r"k8s\.io/kubernetes (v1\.37\.\d+)", module)
    assert version
    cache = Path(os.environ.get("GOMODCACHE") or Path.home() / "go/pkg/mod")
    for source in cache.glob(f"k8s.io/kubernetes@{version[1]}/{SOURCE}"):
        named = re.findall(r"\{Name: names\.(\w+)", source.read_text(encoding="utf-8"))
        assert dict.fromkeys(named) == dict.fromkeys(DEFAULT_PLUGINS)
