"""The webhook answers for each plugin that kube-scheduler has by default, or has a reason why it need not.

A plugin is evaluated node by node, or it is in webhook.core.scheduler.never_required, or both: then the
table has the fields of the pod that are not evaluated.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
from support.control_plane.rendering import ROOT
from support.models.one_node_pods import there, verdict

from webhook.core.placement import feasibility
from webhook.core.scheduler import never_required, plugins
from webhook.core.scheduler.plugins import (
    inter_pod_affinity,
    node_affinity,
    node_resources_fit,
    taint_toleration,
    volumes,
)

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
EVALUATED: Final[Mapping[str, tuple[Callable[..., Any], ...]]] = {
    "NodeUnschedulable": (feasibility.why_unhealthy,),
    "TaintToleration": (taint_toleration.why_repelled,),
    "NodeAffinity": (node_affinity.why_labels_mismatch, node_affinity.why_terms_mismatch),
    "NodeResourcesFit": (node_resources_fit.why_insufficient,),
    "NodeVolumeLimits": (volumes.why_unusable,),
    "VolumeBinding": (volumes.why_unusable,),
    "VolumeZone": (volumes.why_unusable,),
    "InterPodAffinity": (inter_pod_affinity.excluding, inter_pod_affinity.why_excluded),
}
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
    never_required_for = set(re.findall(r'yield "(\w+)"', inspect.getsource(never_required)))
    answered = never_required_for | EVALUATED.keys()
    assert answered | NEEDS_NONE.keys() == set(DEFAULT_PLUGINS)
    assert not answered & NEEDS_NONE.keys()


def test_every_module_of_the_folder_evaluates_a_plugin() -> None:
    """One that is not named above would answer for none."""
    modules = {function.__module__ for functions in EVALUATED.values() for function in functions}
    folder = Path(next(iter(plugins.__path__)))
    here = {f"{plugins.__name__}.{path.stem}" for path in folder.glob("*.py")} - {f"{plugins.__name__}.__init__"}
    assert here | {feasibility.__name__} == modules


@pytest.mark.parametrize("plugin", [name for name in EVALUATED if name != "NodeUnschedulable"])
def test_a_module_names_the_folder_of_its_plugin_and_its_invariant(plugin: str) -> None:
    """As upstream has it: NodeResourcesFit is in noderesources."""
    doc = inspect.getdoc(inspect.getmodule(EVALUATED[plugin][0])) or ""
    folders = re.findall(r"(\w+)/\w+\.go", doc)
    assert any(plugin.lower().startswith(folder) for folder in folders)
    assert re.search(r"Invariant: .*\bnot\b", doc, re.DOTALL)


def test_a_feasible_node_has_passed_each_of_them() -> None:
    """webhook.core.placement.feasibility asks all functions that are named above."""
    wanted = {function.__code__: function for functions in EVALUATED.values() for function in functions}
    entered = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in wanted:
            entered.append(wanted[frame.f_code])

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        found = verdict(there())
    finally:
        sys.setprofile(before)
    assert found.feasible
    assert set(entered) == set(wanted.values())


def test_the_list_is_that_of_the_newest_kubernetes() -> None:
    """As far as its source is here: `make e2e` builds the control plane from it."""
    module = (ROOT / "tests/controlplane/kubernetes-1.37/go.mod").read_text(encoding="utf-8")
    version = re.search(r"k8s\.io/kubernetes (v1\.37\.\d+)", module)
    assert version
    cache = Path(os.environ.get("GOMODCACHE") or Path.home() / "go/pkg/mod")
    for source in cache.glob(f"k8s.io/kubernetes@{version[1]}/{SOURCE}"):
        named = re.findall(r"\{Name: names\.(\w+)", source.read_text(encoding="utf-8"))
        assert dict.fromkeys(named) == dict.fromkeys(DEFAULT_PLUGINS)
