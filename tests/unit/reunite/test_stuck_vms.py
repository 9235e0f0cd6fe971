"""What `StuckVMs` reads of a cluster, and the deletion that it asks for."""

from __future__ import annotations

from typing import Any, Final, cast

import pytest
from msgspec import convert
from support.fakes.one_vm import ListedCluster, Objects
from support.fakes.views import MISSING, ViewWithGaps
from support.objects import builders
from support.scenarios.stuck_vms import LIMITS, NOON, SINCE, STARTED, Object, lost, waiting

from webhook.component_base.client.api import Api
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.observe.vm_status import VMStatus, vm_status_of
from webhook.core.opt_in import Mode, Policy
from webhook.core.reunite.not_yet import Rule
from webhook.core.view import Kind, ObjectRef
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.reunite.stuck_vms import StuckPlan, StuckVMs

POD: Final = "/api/v1/namespaces/vms/pods/virt-launcher-db01"
VMI: Final = "/apis/kubevirt.io/v1/namespaces/vms/virtualmachineinstances/db01"
VM: Final = "/apis/kubevirt.io/v1/namespaces/vms/virtualmachines/db01"
NOW: Final = NOON + 60
KEY: Final = ("vms", "db01")
FREE: Final = lost(builders.node("n2"))


@pytest.fixture
def api() -> Objects:
    """VM db01, whose pod waits for the lost node n1."""
    pod = waiting()
    pod["metadata"] |= {"uid": "u7", "resourceVersion": "77"}
    owners = [{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "db01"}]
    instance = {"metadata": {"name": "db01", "creationTimestamp": STARTED, "ownerReferences": owners}}
    return Objects({POD: pod, VMI: instance, VM: {"spec": {"runStrategy": "Always"}}})


def row(object_: Object | None = None) -> VMStatus:
    """The row of a VM."""
    found = vm_status_of([convert(object_ or waiting(), Pod)], FREE, Policy(mode=Mode.REQUIRED))
    assert found is not None
    return found


def stuck_vms(api: Objects, known: ListedCluster | None = None) -> StuckVMs:
    """The stuck VMs behind these fakes."""
    return StuckVMs(cast("Api", api), cast("ClusterCache", known or ListedCluster(FREE)), LIMITS)


def rule(plan: StuckPlan) -> Rule:
    """The rule that says no to the only VM."""
    assert not plan.restarts
    assert plan.waiting.keys() == {KEY}
    return plan.waiting[KEY].rule


async def test_the_pod_that_was_read_last_is_deleted(api: Objects) -> None:
    """Only as it was then: with its uid and its resourceVersion."""
    stuck = stuck_vms(api)
    plan = await stuck.plan([row()], NOW)
    (action,) = plan.restarts
    assert (plan.waiting, action.node) == ({}, "n2")
    assert await stuck.restart(action) == ""
    assert api.deleted == [(POD, {"preconditions": {"uid": "u7", "resourceVersion": "77"}})]


async def test_a_vm_that_is_not_stuck_is_not_read(api: Objects) -> None:
    """Its pod is on a node."""
    plan = await stuck_vms(api).plan([row(builders.vm_pod("db01", node="n2"))], NOW)
    assert (plan, api.asked) == (StuckPlan(restarts=[], waiting={}), [])


@pytest.mark.parametrize(
    ("answer", "words", "again"),
    [
        pytest.param(409, "the object has been modified", True, id="the pod changed"),
        pytest.param(None, "no answer in 10 s", True, id="no answer"),
    ],
)
async def test_a_refusal_is_returned(answer: int | None, words: str, *, again: bool, api: Objects) -> None:
    """The next round decides about the VM again."""
    stuck = stuck_vms(api)
    (action,) = (await stuck.plan([row()], NOW)).restarts
    api.answer = answer
    assert words in await stuck.restart(action)
    assert bool((await stuck.plan([row()], NOW)).restarts) is again


@pytest.mark.parametrize(
    ("answer", "room"),
    [
        pytest.param(200, False, id="deleted"),
        pytest.param(None, False, id="no answer: it may be deleted"),
        pytest.param(504, False, id="a server error: it may be deleted"),
        pytest.param(404, True, id="somebody else deleted it"),
        pytest.param(409, True, id="not deleted"),
    ],
)
async def test_another_vm_does_not_get_the_same_room(answer: int | None, *, room: bool, api: Objects) -> None:
    """Until the first VM has a new pod."""
    api.objects |= {path.replace("db01", "db02"): value for path, value in api.objects.items()}
    stuck = stuck_vms(api, ListedCluster(lost(builders.node("n2", allocatable={"cpu": "3"}))))
    (action,) = (await stuck.plan([row()], NOW)).restarts
    api.answer = answer
    await stuck.restart(action)
    other = waiting()
    other["metadata"] |= {"name": "virt-launcher-db02"}
    other["metadata"]["ownerReferences"][0] |= {"name": "db02"}
    assert bool((await stuck.plan([row(other)], NOW)).restarts) is room
    new_pod = builders.vm_pod("db01-2", vm="db01", node="n3")
    assert (await stuck.plan([row(other), row(new_pod)], NOW)).restarts


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        pytest.param(POD, None, Rule.NOT_EVALUATED, id="no pod any more"),
        pytest.param(POD, {"metadata": {}, "spec": []}, Rule.NOT_EVALUATED, id="a pod that can't be decoded"),
        pytest.param(VMI, None, Rule.NOT_EVALUATED, id="no VMI"),
        pytest.param(VMI, {"metadata": {}}, Rule.NO_VIRTUAL_MACHINE, id="a VMI of nobody"),
        pytest.param(VM, None, Rule.NOT_EVALUATED, id="no VirtualMachine"),
        pytest.param(VM, {"spec": {"running": True}}, None, id="running instead of runStrategy"),
        pytest.param(VM, {"spec": {"runStrategy": "Manual"}}, Rule.RUN_STRATEGY, id="Manual"),
        pytest.param(
            VMI,
            {"metadata": {"annotations": {"kubevirt-scheduler/reunite": "false"}}},
            Rule.NOT_ASKED,
            id="kept out",
        ),
    ],
)
async def test_what_is_read_decides(path: str, value: Any, expected: Rule | None, api: Objects) -> None:
    """An object that can't be read is no reason to delete a pod."""
    del api.objects[path]
    if value is not None:
        api.objects[path] = value
    plan = await stuck_vms(api).plan([row()], NOW)
    assert bool(plan.restarts) if expected is None else rule(plan) is expected


async def test_failed_starts_are_counted_by_kubevirt(api: Objects) -> None:
    """A VM that failed to start is started again at most once in ten minutes."""
    api.objects[VM]["status"] = {"startFailure": {"consecutiveFailCount": 1}}
    api.objects[VMI]["metadata"]["creationTimestamp"] = SINCE
    assert rule(await stuck_vms(api).plan([row()], NOW)) is Rule.STARTED_AGAIN


async def test_a_vm_that_waits_is_read_once_a_minute(api: Objects) -> None:
    """And once more before its pod is deleted, so that the decision is up to date."""
    stuck = stuck_vms(api)
    for now in (NOON, NOON + 1, NOON + 59.9):
        assert rule(await stuck.plan([row()], now)) is Rule.STUCK_TOO_SOON
    assert api.asked == [POD, VMI, VM]
    assert (await stuck.plan([row()], NOON + 60)).restarts
    assert api.asked == [POD, VMI, VM] * 3


async def test_what_is_remembered_is_not_enough_to_delete(api: Objects) -> None:
    """The pod has got a node since it was read."""
    stuck = stuck_vms(api)
    await stuck.plan([row()], NOON + 1)
    api.objects[POD]["spec"]["nodeName"] = "n2"
    assert rule(await stuck.plan([row()], NOON + 60.5)) is Rule.NOT_STUCK


async def test_what_a_cache_lacks_is_read(api: Objects) -> None:
    """The claim of the VM, which is too new for the cache."""
    ref = ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "a"))
    known = ListedCluster(FREE, ViewWithGaps(FREE, {ref: MISSING}))
    assert (await stuck_vms(api, known).plan([row()], NOW)).restarts
    assert set(known.read_refs) == {ref}
