"""A VM whose pod has a node and does not run: from the pod's own status, and never with less than that."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec.structs import replace
from support.objects import builders
from support.objects.fleets import disk, launcher, scheduled, served, the_row

from webhook.core.api.container import ContainerState, ContainerStateWaiting, ContainerStatus
from webhook.core.api.pod import Pod, PodStatus
from webhook.core.observe.vm_state import is_running_unknown
from webhook.core.observe.vm_status import State, VMStatus

BOUND: Final = "2026-01-02T03:04:05Z"
NO_TIMES: Final = ("yesterday", "2026-01-02T03:04:05", "99999-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00")
JUST_BEFORE, TEN_MINUTES = "2026-01-02T03:14:04Z", "2026-01-02T03:14:05Z"
CREATING: Final = ContainerStatus(name="compute", state=ContainerState(ContainerStateWaiting("ContainerCreating")))
NEW_POD: Final = (
    "kubectl delete pod virt-launcher-db01-aaaaa -n vms; if the VM's runStrategy is Manual, also: virtctl start db01 "
    "-n vms; if it is Once, instead: kubectl delete virtualmachineinstance db01 -n vms"
)


def bound(phase: str | None = "Pending", *, since: str | None = BOUND, containers: Any = (), **parts: Any) -> Pod:
    """The pod of db01 on node-b."""
    conditions = [scheduled(since)] if since else []
    pod = launcher("root", nodeName="node-b", phase=phase, conditions=conditions, **parts)
    assert pod.status
    return replace(pod, status=replace(pod.status, container_statuses=list(containers)))


def row(pod: Pod, at: str = TEN_MINUTES, *, ready: str = "True") -> VMStatus:
    """The row of a VM whose share-manager is on its node."""
    objects = [builders.node("node-b", ready=ready), *disk("root"), *served("root", "node-b", "2026-01-01T00:00:00Z")]
    return the_row(pod, objects=objects, at=at)


def test_a_pod_that_waits_on_its_node_for_ten_minutes_does_not_run() -> None:
    """With the words of the kubelet, if it has any, since when it has its node, and what to do."""
    assert row(bound()).because.endswith("does not run: the kubelet reports no container that waits")
    found = row(bound(containers=[CREATING]))
    assert (found.state, found.since, found.node) == (State.NOT_RUNNING, BOUND, "node-b")
    assert found.why == (
        f"VmNotRunning: pod virt-launcher-db01-aaaaa has had node node-b since {BOUND}, and does not run: "
        "ContainerCreating"
    )
    assert found.remedy == (
        "read what node node-b waits for: kubectl describe pod virt-launcher-db01-aaaaa -n vms. If the node can't be "
        "repaired, set kubevirt-scheduler/co-schedule to false in the VM's template, and delete the pod: " + NEW_POD
    )


def test_a_deleted_pod_on_a_lost_node_needs_more() -> None:
    """It stays until the node is back, or out of service."""
    found = row(bound(deleting=True), ready="Unknown")
    assert found.state is State.NOT_RUNNING
    assert found.remedy.startswith("node node-b is not Ready, so ")


@pytest.mark.parametrize(
    ("pod", "at"),
    [
        pytest.param(bound(containers=[CREATING]), JUST_BEFORE, id="for less than ten minutes"),
        pytest.param(bound("Running"), TEN_MINUTES, id="it runs"),
        pytest.param(bound(since=None), TEN_MINUTES, id="since when it has its node is not known"),
        *(pytest.param(bound(since=text), TEN_MINUTES, id=f"{text} is no time") for text in NO_TIMES),
        pytest.param(bound(None), TEN_MINUTES, id="its phase is not known"),
        pytest.param(replace(bound(), status=None), TEN_MINUTES, id="no status"),
    ],
)
def test_another_pod_is_where_it_is(pod: Pod, at: str) -> None:
    """Less knowledge gives no stronger answer."""
    assert row(pod, at).state is State.TOGETHER


@pytest.mark.parametrize(
    ("pod", "unknown"),
    [
        pytest.param(bound(), False, id="Pending, with a time"),
        pytest.param(bound("Running"), False, id="Running"),
        pytest.param(bound("Running", since=None), False, id="Running, without a time"),
        pytest.param(bound(since=None), True, id="Pending, without a time"),
        *(pytest.param(bound(since=text), True, id=f"Pending, with {text}") for text in NO_TIMES),
        pytest.param(bound(None), True, id="without a phase"),
        pytest.param(replace(bound(), status=None), True, id="without a status"),
        pytest.param(launcher("root", phase=None), False, id="on no node"),
    ],
)
def test_whether_a_pod_runs_can_be_unknown(pod: Pod, unknown: bool) -> None:  # noqa: FBT001 - a column
    """Then the commands say so."""
    assert is_running_unknown(pod) is unknown


@pytest.mark.parametrize("text", ["2026-01-02T04:04:05+01:00", "2026-01-02T03:04:05.678Z", "20260102T030405Z"])
def test_a_time_of_a_file_counts_in_any_form(text: str) -> None:
    """It becomes one that compares as text with those of an API server."""
    assert row(bound(since=text)).since == BOUND


def test_the_first_container_that_waits_tells_why() -> None:
    """An init container comes first: the others wait for it."""
    pulling = ContainerStatus(name="disk", state=ContainerState(ContainerStateWaiting("ImagePullBackOff")))
    silent = ContainerStatus(name="disk", state=ContainerState(ContainerStateWaiting()))
    runs = ContainerStatus(name="disk", state=ContainerState())
    waiting = [
        PodStatus(init_container_statuses=init, container_statuses=[ContainerStatus(), CREATING]).waiting
        for init in ([pulling], [silent], [runs], None)
    ]
    assert waiting == ["ImagePullBackOff", *["ContainerCreating"] * 3]
    assert PodStatus().waiting is None
