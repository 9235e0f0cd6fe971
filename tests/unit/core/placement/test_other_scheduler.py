"""A virt-launcher pod of another scheduler: only a listed name is replaced, and the pod says so."""

from __future__ import annotations

import json
from typing import Any, Final

import jsonpatch
import pytest
from support.fakes.views import cluster
from support.objects.builders import migration_target_pod, review, virt_launcher_pod

from webhook.core.admit import Answer, Entry, admit
from webhook.core.opt_in import Policy
from webhook.core.patch.decision_patch import SCHEDULER_NAME

Object = dict[str, Any]
POLICY: Final = Policy(taken_over=frozenset({"kubevirt-scheduler", "virthorn-scheduler"}))
TAKE_OVER: Final = "kubevirt-scheduler/take-over"


def answered(pod: Object, policy: Policy = POLICY) -> Answer:
    """Return the answer of the entry take-over about a pod."""
    found = admit(json.dumps(review(pod)).encode(), cluster(), policy, Entry.TAKE_OVER)
    assert isinstance(found, Answer)
    return found


def patched(pod: Object, policy: Policy = POLICY) -> Object:
    """Return the pod after the answer's patch."""
    result: Object = jsonpatch.apply_patch(pod, [dict(each) for each in answered(pod, policy).operations])
    return result


def of(scheduler: str, **described: Any) -> Object:
    """Return the start pod of a VM that names a scheduler."""
    return virt_launcher_pod(schedulerName=scheduler, **described)


PODS: Final = {
    "an opted-in VM": of("kubevirt-scheduler"),
    "a VM without the annotation": of("kubevirt-scheduler", opt_in=None),
    "a second listed name": of("virthorn-scheduler"),
    "the target of a live migration": migration_target_pod(source="n2", schedulerName="kubevirt-scheduler"),
}


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
def test_a_listed_name_is_replaced_and_nothing_else(pod: Object) -> None:
    """The annotation has both names. Log and metrics count the pod as taken over."""
    after = patched(pod)
    was = pod["spec"]["schedulerName"]
    assert after["spec"] == {**pod["spec"], "schedulerName": "default-scheduler"}
    text = after["metadata"]["annotations"].pop(TAKE_OVER)
    assert text == f"SchedulerTakenOver: spec.schedulerName was {was}, and the webhook wrote default-scheduler"
    assert after["metadata"] == pod["metadata"]
    found = answered(pod).audit_annotations
    assert (found["decision"], found["reason"]) == ("taken-over", "SchedulerTakenOver")


def test_the_new_scheduler_can_be_named() -> None:
    """`--take-over-to` names it."""
    policy = Policy(taken_over=frozenset({"kubevirt-scheduler"}), scheduler_name="packing")
    assert patched(of("kubevirt-scheduler"), policy)["spec"]["schedulerName"] == "packing"


LEFT: Final = {
    "a name that is not listed": (of("volcano"), "SchedulerNotListed"),
    "a name that only begins like a listed one": (of("kubevirt-scheduler-2"), "SchedulerNotListed"),
    "no name": (virt_launcher_pod(), "SchedulerNotListed"),
    "the new name": (of("default-scheduler"), "SchedulerNotListed"),
    "a pod that has a node": (of("kubevirt-scheduler", nodeName="n1"), "NodeAlreadySet"),
    "another pod": (of("kubevirt-scheduler", labels={"kubevirt.io": "hotplug-disk"}), "NotVirtLauncher"),
}


@pytest.mark.parametrize(("pod", "reason"), LEFT.values(), ids=LEFT)
def test_any_other_pod_stays_unchanged(pod: Object, reason: str) -> None:
    """Whatever the API server sends."""
    found = answered(pod)
    assert (found.operations, found.audit_annotations["reason"]) == ([], reason)
    assert found.audit_annotations["decision"] == "unchanged"


def test_without_the_option_no_name_is_listed() -> None:
    """The component and the option belong together: one without the other changes no pod."""
    assert answered(of("kubevirt-scheduler"), Policy()).operations == []


def test_a_webhook_that_audits_only_writes_the_annotation() -> None:
    """The pod keeps its scheduler, and says what would have been written."""
    pod, audit = of("kubevirt-scheduler"), Policy(taken_over=POLICY.taken_over, audit=True)
    assert SCHEDULER_NAME not in [each["path"] for each in answered(pod, audit).operations]
    text = patched(pod, audit)["metadata"]["annotations"][TAKE_OVER]
    assert text.startswith("AuditTakeOver: the webhook only audits (--audit=on); it would replace ")
    assert answered(pod, audit).audit_annotations["decision"] == "unchanged"


def test_a_pod_without_space_for_the_annotation_still_gets_the_scheduler() -> None:
    """A VM that waits for a scheduler which is gone is worse than a missing annotation."""
    pod = of("kubevirt-scheduler", annotations={"full": "x" * (256 * 1024 - 10)})
    assert [each["path"] for each in answered(pod).operations] == [SCHEDULER_NAME]
