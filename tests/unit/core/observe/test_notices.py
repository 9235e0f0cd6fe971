"""What an admission is told as on the VirtualMachineInstance: which, to whom, in which words, and what is not told."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from support.fakes.views import cluster
from support.objects.builders import (
    node,
    persistent_volume,
    persistent_volume_claim,
    review,
    share_manager,
    share_manager_pod,
    virt_launcher_pod,
    vm_pod,
    volume_attachment,
)

from webhook.core.admit import Answer, Entry, admit, unchanged
from webhook.core.api.admission_review import decode
from webhook.core.observe import events
from webhook.core.observe.events import Event
from webhook.core.opt_in import Mode, Policy
from webhook.core.reasons import Reason, Why
from webhook.core.view import ClusterView

Object = dict[str, Any]
UID: Final = virt_launcher_pod()["metadata"]["ownerReferences"][0]["uid"]
VOLUME: Final = [
    persistent_volume_claim("disk", volume_name="pv"),
    persistent_volume("pv", claim="disk", handle="h"),
]
RUNNING: Final = [*VOLUME, share_manager("h", state="running", ownerID="n1"), node("n1")]


def answer(pod: Object, *objects: Object, entry: Entry = Entry.VIRT_LAUNCHER, **request: Any) -> Answer:
    """The answer about a pod in a cluster of these objects; in Longhorn's namespace for its pods."""
    namespace = {"namespace": "longhorn-system"} if entry is Entry.SHARE_MANAGER else {}
    view: ClusterView = cluster(*objects)
    policy = Policy(request.pop("mode", Mode.REQUIRED))
    found = admit(json.dumps(review(pod, **{**namespace, **request})).encode(), view, policy, entry)
    assert isinstance(found, Answer)
    return found


def told(pod: Object, *objects: Object, **parts: Any) -> list[Event]:
    """What is told of a pod."""
    found = answer(pod, *objects, **parts)
    said = events.events_for(found, parts.get("entry", Entry.VIRT_LAUNCHER))
    assert events.may_have_events(found) or not said
    return said


# A VM's start pod.

LAUNCHER: Final = virt_launcher_pod(claims=["disk"])
STARTS: Final = {
    "pinned": (LAUNCHER, RUNNING, "CoScheduled", "required on n1: ShareManagerOwner: claim disk: ", False),
    "preferred, as it asked": (
        virt_launcher_pod(claims=["disk"], opt_in="preferred"),
        RUNNING,
        "CoScheduledPreferred",
        "preferred on n1: ShareManagerOwner: claim disk: ",
        False,
    ),
    "a cold start": (
        LAUNCHER,
        [*VOLUME, share_manager("h", state="stopped")],
        "NotCoScheduled",
        "ShareManagerNoNode: claim disk: the share-manager of volume h is on no node yet (state stopped)",
        False,
    ),
    "no claim": (virt_launcher_pod(), [], "NotCoScheduled", "NoClaims: the pod has no", False),
    "a claim that is not there": (LAUNCHER, [], "NotCoScheduled", "ClaimNotFound: claim disk: no such", True),
    "an annotation that is no word of ours": (
        virt_launcher_pod(opt_in="yes"),
        [],
        "NotCoScheduled",
        "BadCoSchedule: annotation kubevirt-scheduler/co-schedule: got 'yes', expected ",
        True,
    ),
}


@pytest.mark.parametrize(("pod", "objects", "reason", "words", "warning"), STARTS.values(), ids=STARTS)
def test_a_start_is_told_on_its_vm(
    pod: Object, objects: list[Object], reason: str, words: str, *, warning: bool
) -> None:
    """With our reason code and sentence; a warning where something is wrong, none where there is nothing to be with."""
    [found] = told(pod, *objects)
    assert (found.namespace, found.name, found.uid) == ("vms", "db01", UID)
    assert (found.reason, found.warning) == (reason, warning)
    assert found.message.startswith(words)


def test_a_placed_pod_is_told_in_the_annotation_s_words() -> None:
    """`kubectl describe` says of the VM what it says of the pod."""
    [found] = told(LAUNCHER, *RUNNING)
    assert found.message == tell(answer(LAUNCHER, *RUNNING).decision)


UNTOLD: Final[dict[str, tuple[Object, Object]]] = {
    "a dry run": (LAUNCHER, {"dryRun": True}),
    "a VM that did not ask": (virt_launcher_pod(claims=["disk"], opt_in=None), {}),
    "a VM that asked for nothing": (virt_launcher_pod(claims=["disk"], opt_in="false"), {}),
    "the cluster's mode is off": (LAUNCHER, {"mode": Mode.OFF}),
    "a live migration's target": (virt_launcher_pod(claims=["disk"], labels={"kubevirt.io/migrationJobUID": "x"}), {}),
    "an update": (LAUNCHER, {"operation": "UPDATE"}),
    "a pod that nobody owns": ({**LAUNCHER, "metadata": {**LAUNCHER["metadata"], "ownerReferences": None}}, {}),
    "no namespace": (LAUNCHER, {"namespace": None}),
    "a namespace that is none": (LAUNCHER, {"namespace": "../vms"}),
}


@pytest.mark.parametrize(("pod", "asked"), [pytest.param(*row, id=name) for name, row in UNTOLD.items()])
def test_nothing_is_told(pod: Object, asked: Object) -> None:
    """Of what is not kept, of who did not ask, and of what is on no VirtualMachineInstance."""
    assert told(pod, *RUNNING, **asked) == []


def owned(**owner: Any) -> Object:
    """A VM start pod with another owner."""
    reference = {"kind": "VirtualMachineInstance", "name": "db01", "uid": UID, **owner}
    return {**LAUNCHER, "metadata": {**LAUNCHER["metadata"], "ownerReferences": [reference]}}


@pytest.mark.parametrize(
    "owner",
    [{"kind": "ReplicaSet"}, {"name": None}, {"name": "a/b"}, {"name": "x" * 254}, {"uid": None}, {"uid": ""}],
    ids=str,
)
def test_an_owner_that_no_event_can_be_about_gets_none(owner: Object) -> None:
    """Another kind, no name, one that is none, or no uid: an Event would be about something else."""
    assert told(owned(), *RUNNING) != []
    assert told(owned(**owner), *RUNNING) == []


@pytest.mark.parametrize(
    ("opt_in", "why", "count"),
    [
        ("true", Reason.INTERNAL_ERROR.why(problem="KeyError"), 1),
        ("preferred", Reason.PATCH_NOT_PROVEN.why(problem="add /spec"), 1),
        (None, Reason.INTERNAL_ERROR.why(problem="KeyError"), 0),
    ],
    ids=["asked, and we failed", "asked, and the patch was not sent", "did not ask"],
)
def test_a_failure_of_ours_is_told_to_whoever_asked(opt_in: str | None, why: Why, count: int) -> None:
    """As a warning: it is the VM that goes without."""
    request = decode(json.dumps(review(virt_launcher_pod(claims=["disk"], opt_in=opt_in))).encode())
    found = events.events_for(unchanged(request, why), Entry.VIRT_LAUNCHER)
    assert [(each.reason, each.message, each.warning) for each in found] == [("NotCoScheduled", str(why), True)] * count


def test_a_failure_before_there_was_a_pod_is_told_to_nobody() -> None:
    """There is no VirtualMachineInstance in it."""
    request = decode(json.dumps(review(None)).encode())
    assert events.events_for(unchanged(request, Reason.INTERNAL_ERROR.why(problem="x")), Entry.VIRT_LAUNCHER) == []


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\U0001f600"], ids=["one byte", "two", "four"])
def test_a_message_is_as_long_as_the_api_server_takes(letter: str) -> None:
    """Under 1024 bytes, never half a letter, and it says that there was more."""
    pod = virt_launcher_pod(claims=[letter * 2000])
    [found] = told(pod)
    assert 1015 < len(found.message.encode()) < 1024
    assert found.message.endswith(f"{letter}...")


# A share-manager pod.

CONSUMED: Final = [persistent_volume("h", claim="disk"), node("n1"), node("n2"), node("n3", cordoned=True)]
SHARE_MANAGER: Final = share_manager_pod("h", phase=None)


def steered(*objects: Object, **parts: Any) -> list[Event]:
    """What is told of the volume's share-manager pod."""
    return told(SHARE_MANAGER, *CONSUMED, *objects, entry=Entry.SHARE_MANAGER, **parts)


def vm(name: str, on: str | None, **parts: Any) -> Object:
    """A VM on the volume's claim."""
    return vm_pod(name, node=on, **{"claims": ["disk"], **parts})


def test_a_share_manager_is_told_on_the_vms_that_it_follows() -> None:
    """On each that is on a node that it is drawn to, once, with the volume."""
    one, other = vm("a", "n1"), vm("b", "n2")
    found = steered(one, other, vm("c", "n3"), vm("d", None), vm("e", "n1", opt_in=None))
    owners = [each["metadata"]["ownerReferences"][0] for each in (one, other)]
    assert [(each.namespace, each.name, each.uid) for each in found] == [
        ("vms", owner["name"], owner["uid"]) for owner in owners
    ]
    assert {(each.reason, each.warning) for each in found} == {("ShareManagerSteered", False)}
    assert found[0].message.startswith("share-manager of volume h: preferred on n1, n2: ConsumerOnNode: claim vms/disk")


def test_a_share_manager_that_can_not_follow_is_told_too() -> None:
    """The VM's node is cordoned: the VM and its share-manager come apart, and the VM says why."""
    [found] = steered(vm("a", "n3"))
    assert (found.name, found.reason, found.warning) == ("a", "ShareManagerNotSteered", True)
    assert found.message == "share-manager of volume h: NodeCordoned: node n3 is cordoned"


def test_a_vm_that_only_a_ticket_places_is_told_as_well() -> None:
    """Its pod is known, its node is Longhorn's word."""
    [found] = steered(vm("a", None), volume_attachment("h", [("csi-attacher", "n1")]))
    assert (found.name, found.reason) == ("a", "ShareManagerSteered")
    assert "AttachmentTicket" in found.message


@pytest.mark.parametrize(
    ("objects", "asked"),
    [([], {}), ([vm("a", None)], {}), ([vm("a", "n1", opt_in=None)], {}), ([vm("a", "n1")], {"dryRun": True})],
    ids=["nobody uses it", "its VM is on no node", "its VM did not ask", "a dry run"],
)
def test_nothing_is_told_of_a_share_manager_that_is_nobody_s(objects: list[Object], asked: Object) -> None:
    """There is no VM to tell it to."""
    assert steered(*objects, **asked) == []


def test_vms_that_are_told_are_bounded() -> None:
    """Eight of a volume that many VMs share."""
    assert len(steered(*(vm(f"v{i}", "n1") for i in range(12)))) == 8
