"""A webhook whose name comes after ours changes the pod: the API server asks us again, and what is right now is stored.

The stored pod is the one that comes of the same change before we are ever asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

import jsonpatch
import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Object
from support.control_plane.vm_starts import Starting
from support.drivers.serving import Serving
from support.fakes.webhooks import Later, later_webhook
from support.models.pod_changes import plain
from support.objects import builders, builders_pods
from support.objects.patches import add
from support.scenarios.admitting import Admission, admission_lines, until, until_watched

LABEL: Final = "tests/disk"
_SET_FOR_EACH: Final = ("name", "uid", "creationTimestamp", "managedFields")  # by the API server, for each pod

_SIDECAR: Final = {"name": "sidecar", "image": "example.com/sidecar", "resources": {"requests": {"cpu": "40"}}}
CHANGES: Final = {
    "selects another node": add("/spec/nodeSelector", {LABEL: "ssd"}),
    "takes more room than is left": add("/spec/containers/-", _SIDECAR),
    "gates the pod": add("/spec/schedulingGates", [{"name": "tests/quota"}]),
    "drops our affinity": add("/spec/affinity", {}),
    "annotates the pod": add("/metadata/annotations/other", "webhook"),
    "opts the VM out": add("/metadata/annotations/kubevirt-scheduler~1co-schedule", "false"),
}
"""What the later webhook does: to a pod that we never saw it does the same."""

_LINUX: Final = {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
_ANY_DISK: Final = {"key": LABEL, "operator": "NotIn", "values": ["tape"]}
_OWN_TERMS: Final = ({"matchExpressions": [_LINUX]}, {"matchExpressions": [_LINUX, _ANY_DISK]})
AFFINITY: Final = builders.node_affinity(required=_OWN_TERMS, preferred={"node-b": 10})  # of the pod's own


class Told(NamedTuple):
    """What our second answer says, and whether it has operations."""

    decision: str
    reason: str
    again: bool = True


LAUNCHER: Final = {
    "selects another node": Told("preferred", "NodeSelectorMismatch"),
    "takes more room than is left": Told("preferred", "NoRoom"),
    "gates the pod": Told("preferred", "RuleNotEvaluated"),
    "drops our affinity": Told("required", "ShareManagerPod"),
    "annotates the pod": Told("required", "ShareManagerPod", again=False),
    "opts the VM out": Told("unchanged", "OptedOut"),  # the API server calls us again, because we wrote into the pod
}
BOUND_TO: Final = {
    "selects another node": "node-b",
    "takes more room than is left": "node-b",
    "drops our affinity": "node-a",
    "annotates the pod": "node-a",
}


class Here(NamedTuple):
    """The control plane, the program, and the later webhook."""

    installed: Installed
    server: Serving
    later: Later

    def created(self, pod: Object, **parameters: str) -> Admission:
        """The pod, created."""
        return Admission(self.installed.plane.api.create(pod, **parameters), 0, 0)

    def pinned_now(self) -> None:
        """Wait until a VM's pod is pinned: the program knows that no earlier one is on its way."""
        until(lambda: self.created(launcher(), dryRun="All").required == ["node-a"], "a pin to node-a")


@pytest.fixture(scope="module")
def here(installed: Installed) -> Iterator[Here]:
    """The share-manager of `disk` is on node-a; node-b has the label, and all its room."""
    api = installed.plane.api
    with ExitStack() as stack:
        stack.enter_context(Starting(api))
        stack.enter_context(ClusterState(api)).become(_cluster())
        server = stack.enter_context(installed.serving())
        until_watched(server)
        stack.callback(installed.disable)
        installed.enable()
        installed.until_called()
        yield Here(installed, server, stack.enter_context(later_webhook(installed)))


def _cluster() -> list[Object]:
    nodes = [builders.node("node-a"), builders.node("node-b", labels={LABEL: "ssd"})]
    return [
        *nodes,
        *(builders.longhorn_node(node["metadata"]["name"]) for node in nodes),
        *(builders.instance_manager_pod(node["metadata"]["name"]) for node in nodes),
        builders_pods.pod("filler", node="node-a", requests={"cpu": "32"}),  # of 64
        *_claim("disk"),
        builders.share_manager("pvc-disk", state="running", ownerID="node-a"),
        builders.share_manager_pod("pvc-disk", nodeName="node-a"),
    ]


def _claim(name: str) -> list[Object]:
    return [
        builders.persistent_volume_claim(name, volume_name=f"pvc-{name}"),
        builders.persistent_volume(f"pvc-{name}", claim=name),
    ]


def launcher(**spec: Any) -> Object:
    """A VM's pod at its start."""
    return builders.vm_pod("db01", claims=["disk"], **spec)


def as_asked_for(admission: Admission) -> Any:
    """Metadata and spec without empty fields and fields that differ in each pod. A gated pod's status has a time."""
    metadata = {key: value for key, value in admission.pod["metadata"].items() if key not in _SET_FOR_EACH}
    return plain({"metadata": metadata, "spec": admission.pod["spec"]})


@pytest.mark.parametrize("change", CHANGES)
def test_a_virt_launcher_pod_is_decided_on_again(change: str, here: Here) -> None:
    """The pod is stored as after an early change. The pin stays only if the changed pod still allows it."""
    pod, told = launcher(affinity=AFFINITY), LAUNCHER[change]
    early = here.created(jsonpatch.apply_patch(pod, [CHANGES[change]]), dryRun="All")
    before = len(admission_lines(here.server))
    with here.later.doing(CHANGES[change]):
        late = here.created(pod, dryRun="All")
    first, second = admission_lines(here.server)[before:]
    assert as_asked_for(late) == as_asked_for(early)
    assert (first["decision"], first["reason"]) == ("required", "ShareManagerPod")
    assert (second["decision"], second["reason"], "operations" in second) == told
    assert set(late.required) == ({"node-a"} if told.decision == "required" else set())


@pytest.mark.parametrize(("change", "node"), BOUND_TO.items(), ids=BOUND_TO)
def test_the_scheduler_finds_a_node(change: str, node: str, here: Here) -> None:
    """A pod that is really created is bound, where our first answer would have left it Pending, too."""
    here.pinned_now()
    with here.later.doing(CHANGES[change]):
        late = here.created(launcher())
    api = here.installed.plane.api
    try:
        assert late.required == (["node-a"] if node == "node-a" else [])
        assert Starting(api).placed(late.pod) == node
    finally:
        api.delete(late.pod)
