"""The Events of an admission: on which VirtualMachineInstance, with which text, and which admissions have none."""

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
from webhook.core.decision import decision_sentence
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
    """Return the answer about a pod in a cluster of these objects; in Longhorn's namespace for share-manager pods."""
    namespace = {"namespace": "longhorn-system"} if entry is Entry.SHARE_MANAGER else {}
    view: ClusterView = cluster(*objects)
    policy = Policy(request.pop("mode", Mode.REQUIRED), audit=request.pop("audit", False))
    found = admit(json.dumps(review(pod, **{**namespace, **request})).encode(), view, policy, entry)
    assert isinstance(found, Answer)
    return found


def events_of(pod: Object, *objects: Object, **parts: Any) -> list[Event]:
    """Return the Events for a pod."""
    found = answer(pod, *objects, **parts)
    found_events = events.events_for(found, parts.get("entry", Entry.VIRT_LAUNCHER))
    assert events.may_have_events(found) or not found_events
    return found_events


# A VM's start pod.

START_POD: Final = virt_launcher_pod(claims=["disk"])
STARTS: Final = {
    "pinned": (START_POD, RUNNING, "CoScheduled", "required on n1: ShareManagerOwner: claim disk: ", False),
    "preferred, as it asked": (
        virt_launcher_pod(claims=["disk"], opt_in="preferred"),
        RUNNING,
        "CoScheduledPreferred",
        "preferred on n1: ShareManagerOwner: claim disk: ",
        False,
    ),
    "a cold start": (
        START_POD,
        [*VOLUME, share_manager("h", state="stopped")],
        "NotCoScheduled",
        "ShareManagerNoNode: claim disk: the share-manager of volume h is on no node yet (state stopped)",
        False,
    ),
    "no claim": (virt_launcher_pod(), [], "NotCoScheduled", "NoClaims: the pod has no", False),
    "a claim that is not there": (
        START_POD,
        [],
        "NotCoScheduled",
        "ClaimNotFound: claim disk: namespace vms has no ",
        True,
    ),
    "an unknown annotation value": (
        virt_launcher_pod(opt_in="yes"),
        [],
        "NotCoScheduled",
        "BadCoSchedule: annotation kubevirt-scheduler/co-schedule: got 'yes', expected ",
        True,
    ),
}


@pytest.mark.parametrize(("pod", "objects", "reason", "words", "warning"), STARTS.values(), ids=STARTS)
def test_a_start_pod_gives_an_event_on_its_vm(
    pod: Object, objects: list[Object], reason: str, words: str, *, warning: bool
) -> None:
    """The Event has the reason code and the sentence. It is a warning only if something is wrong."""
    [found] = events_of(pod, *objects)
    assert (found.namespace, found.name, found.uid) == ("vms", "db01", UID)
    assert (found.reason, found.warning) == (reason, warning)
    assert found.message.startswith(words)


def test_the_event_of_a_placed_pod_has_the_text_of_the_annotation() -> None:
    """`kubectl describe` shows the same text for the VM and for the pod."""
    [found] = events_of(START_POD, *RUNNING)
    assert found.message == decision_sentence(answer(START_POD, *RUNNING).decision)


def test_a_webhook_that_audits_does_not_warn() -> None:
    """The Events say that the pods stay unchanged, what would have been written, and that nothing is wrong."""
    [start] = events_of(START_POD, *RUNNING, audit=True)
    assert (start.reason, start.warning) == ("NotCoScheduled", False)
    assert start.message.startswith(
        "AuditRequired: the webhook only audits (--audit=on); it would write a requirement: required on n1"
    )
    [steered] = steering_events(vm("a", "n1"), audit=True)
    assert (steered.reason, steered.warning) == ("ShareManagerNotSteered", False)
    assert steered.message.startswith("share-manager of volume h: AuditPreferred: ")


UNTOLD: Final[dict[str, tuple[Object, Object]]] = {
    "a dry run": (START_POD, {"dryRun": True}),
    "a VM that did not ask": (virt_launcher_pod(claims=["disk"], opt_in=None), {}),
    "a VM that asked for nothing": (virt_launcher_pod(claims=["disk"], opt_in="false"), {}),
    "the cluster's mode is off": (START_POD, {"mode": Mode.OFF}),
    "a live migration's target": (virt_launcher_pod(claims=["disk"], labels={"kubevirt.io/migrationJobUID": "x"}), {}),
    "an update": (START_POD, {"operation": "UPDATE"}),
    "a pod that nobody owns": ({**START_POD, "metadata": {**START_POD["metadata"], "ownerReferences": None}}, {}),
    "no namespace": (START_POD, {"namespace": None}),
    "a namespace that is none": (START_POD, {"namespace": "../vms"}),
}


@pytest.mark.parametrize(("pod", "asked"), [pytest.param(*row, id=name) for name, row in UNTOLD.items()])
def test_no_event(pod: Object, asked: Object) -> None:
    """For a dry run, a VM without the annotation, and a pod without a VirtualMachineInstance."""
    assert events_of(pod, *RUNNING, **asked) == []


def owned(**owner: Any) -> Object:
    """Return a VM start pod with another owner."""
    reference = {"kind": "VirtualMachineInstance", "name": "db01", "uid": UID, **owner}
    return {**START_POD, "metadata": {**START_POD["metadata"], "ownerReferences": [reference]}}


@pytest.mark.parametrize(
    "owner",
    [{"kind": "ReplicaSet"}, {"name": None}, {"name": "a/b"}, {"name": "x" * 254}, {"uid": None}, {"uid": ""}],
    ids=str,
)
def test_an_owner_that_is_not_a_vmi_gets_no_event(owner: Object) -> None:
    """Another kind, no name, an invalid name, or no uid: the Event would be about another object."""
    assert events_of(owned(), *RUNNING) != []
    assert events_of(owned(**owner), *RUNNING) == []


@pytest.mark.parametrize(
    ("opt_in", "why", "count"),
    [
        ("true", Reason.INTERNAL_ERROR.why(problem="KeyError"), 1),
        ("preferred", Reason.PATCH_DOES_NOT_APPLY.why(problem="add /spec"), 1),
        (None, Reason.INTERNAL_ERROR.why(problem="KeyError"), 0),
    ],
    ids=["asked, and we failed", "asked, and the patch was not sent", "did not ask"],
)
def test_an_internal_error_gives_a_warning_to_a_vm_that_asked(opt_in: str | None, why: Why, count: int) -> None:
    """The VM starts without co-scheduling."""
    request = decode(json.dumps(review(virt_launcher_pod(claims=["disk"], opt_in=opt_in))).encode())
    found = events.events_for(unchanged(request, why, request.pod()[0]), Entry.VIRT_LAUNCHER)
    assert [(each.reason, each.message, each.warning) for each in found] == [("NotCoScheduled", str(why), True)] * count


def test_an_error_without_a_pod_gives_no_event() -> None:
    """Without a pod there is no VirtualMachineInstance."""
    request = decode(json.dumps(review(None)).encode())
    assert events.events_for(unchanged(request, Reason.INTERNAL_ERROR.why(problem="x")), Entry.VIRT_LAUNCHER) == []


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\U0001f600"], ids=["one byte", "two", "four"])
def test_a_message_is_cut_to_what_the_api_server_accepts(letter: str) -> None:
    """Under 1024 bytes, never half a character, and with dots at the end."""
    [found] = events_of(START_POD, *VOLUME, share_manager("h", state=letter * 2000))
    assert 1015 < len(found.message.encode()) < 1024
    assert found.message.endswith(f"{letter}...")


# A share-manager pod.

CONSUMED: Final = [persistent_volume("h", claim="disk"), node("n1"), node("n2"), node("n3", cordoned=True)]
SHARE_MANAGER: Final = share_manager_pod("h", phase=None)


def steering_events(*objects: Object, **parts: Any) -> list[Event]:
    """Return the Events for the volume's share-manager pod."""
    return events_of(SHARE_MANAGER, *CONSUMED, *objects, entry=Entry.SHARE_MANAGER, **parts)


def vm(name: str, on: str | None, **parts: Any) -> Object:
    """Return the pod of a VM that uses the volume's claim."""
    return vm_pod(name, node=on, **{"claims": ["disk"], **parts})


def test_a_steered_share_manager_gives_an_event_on_its_vms() -> None:
    """One Event on each VM whose node is preferred, with the volume's name."""
    one, other = vm("a", "n1"), vm("b", "n2")
    found = steering_events(one, other, vm("c", "n3"), vm("d", None), vm("e", "n1", opt_in=None))
    owners = [each["metadata"]["ownerReferences"][0] for each in (one, other)]
    assert [(each.namespace, each.name, each.uid) for each in found] == [
        ("vms", owner["name"], owner["uid"]) for owner in owners
    ]
    assert {(each.reason, each.warning) for each in found} == {("ShareManagerSteered", False)}
    assert found[0].message.startswith("share-manager of volume h: preferred on n1, n2: ConsumerOnNode: claim vms/disk")


def test_a_share_manager_that_is_not_steered_gives_a_warning() -> None:
    """The VM's node is cordoned, so VM and share-manager get onto different nodes."""
    [found] = steering_events(vm("a", "n3"))
    assert (found.name, found.reason, found.warning) == ("a", "ShareManagerNotSteered", True)
    assert found.message == "share-manager of volume h: NodeCordoned: node n3 is cordoned"


def test_a_vm_whose_node_a_ticket_names_gets_an_event() -> None:
    """Its pod is known, and Longhorn's ticket names the node."""
    [found] = steering_events(vm("a", None), volume_attachment("h", [("csi-attacher", "n1")]))
    assert (found.name, found.reason) == ("a", "ShareManagerSteered")
    assert "AttachmentTicket" in found.message


@pytest.mark.parametrize(
    ("objects", "asked"),
    [([], {}), ([vm("a", None)], {}), ([vm("a", "n1", opt_in=None)], {}), ([vm("a", "n1")], {"dryRun": True})],
    ids=["nobody uses it", "its VM is on no node", "its VM did not ask", "a dry run"],
)
def test_a_share_manager_without_a_vm_gives_no_event(objects: list[Object], asked: Object) -> None:
    """There is no VirtualMachineInstance to write on."""
    assert steering_events(*objects, **asked) == []


def test_at_most_eight_vms_get_an_event() -> None:
    """If many VMs share one volume."""
    assert len(steering_events(*(vm(f"v{i}", "n1") for i in range(12)))) == 8
