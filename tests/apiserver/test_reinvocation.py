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
from support.control_plane.later_webhook import Later, later_webhook
from support.control_plane.vm_starts import Starting
from support.drivers.serving import Serving
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
}
"""What the later webhook does: to a pod that we never saw it does the same."""
OPTS_OUT: Final = add("/metadata/annotations/kubevirt-scheduler~1co-schedule", "false")

_LINUX: Final = {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
_ANY_DISK: Final = {"key": LABEL, "operator": "NotIn", "values": ["tape"]}
_OWN_TERMS: Final = ({"matchExpressions": [_LINUX]}, {"matchExpressions": [_LINUX, _ANY_DISK]})
SPECS: Final = {
    "no affinity": {},
    "an affinity of its own": {"affinity": builders.node_affinity(required=_OWN_TERMS, preferred={"node-b": 10})},
}


class Told(NamedTuple):
    """What is right after a change: the decision, its reason, and the reason why nothing is required.

    `again`: whether our second answer has operations.
    """

    decision: str
    reason: str
    not_required: str = ""
    again: bool = True


_PINNED: Final = Told("required", "ShareManagerPod")
LAUNCHER: Final = {
    "selects another node": Told("preferred", "ShareManagerPod", "NodeSelectorMismatch"),
    "takes more room than is left": Told("preferred", "ShareManagerPod", "NoRoom"),
    "gates the pod": Told("preferred", "ShareManagerPod", "RuleNotEvaluated"),
    "drops our affinity": _PINNED,
    "annotates the pod": _PINNED._replace(again=False),
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


def decided_on_again(here: Here, pod: Object, change: str, at_first: Told, told: Told) -> Admission:
    """The pod as it is stored after a late change: as after an early one, and our second answer is the right one."""
    early = here.created(jsonpatch.apply_patch(pod, [CHANGES[change]]), dryRun="All")
    before = len(admission_lines(here.server))
    with here.later.doing(CHANGES[change]):
        late = here.created(pod, dryRun="All")
    first, second = admission_lines(here.server)[before:]
    assert as_asked_for(late) == as_asked_for(early)
    assert (first["decision"], first["reason"]) == (at_first.decision, at_first.reason)
    assert (second["decision"], second["reason"]) == (told.decision, told.not_required or told.reason)
    assert ("operations" in second) == told.again
    return late


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_virt_launcher_pod_is_decided_on_again(change: str, spec: Object, here: Here) -> None:
    """The pin stays if the changed pod still allows it. Otherwise the pin is removed and the preference stays."""
    told = LAUNCHER[change]
    late = decided_on_again(here, launcher(**spec), change, _PINNED, told)
    assert late.decision.startswith(f"{told.decision} on node-a: {told.reason}: ")
    assert (f"; not required, because {told.not_required}: " in late.decision) == bool(told.not_required)
    assert set(late.required) == (set() if told.not_required else {"node-a"})
    assert "node-a" in late.preferred


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_vm_that_a_later_webhook_opts_out_is_left_alone(spec: Object, here: Here) -> None:
    """The API server calls us for a pod with "false" if we have written into the pod; we remove all of that."""
    assert opted_out_late(here, launcher(**spec)) == "required"


def opted_out_late(here: Here, pod: Object) -> str:
    """Our first decision; the pod is stored as if we had never seen it."""
    early = here.created(jsonpatch.apply_patch(pod, [OPTS_OUT]), dryRun="All")
    before = len(admission_lines(here.server))
    with here.later.doing(OPTS_OUT):
        late = here.created(pod, dryRun="All")
    first, second = admission_lines(here.server)[before:]
    assert (second["decision"], second["reason"]) == ("unchanged", "OptedOut")
    assert as_asked_for(late) == as_asked_for(early)
    return str(first["decision"])


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
