"""Who opts a VM in: its own annotation first, then its Namespace's label, then the cluster's setting."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import MISSING, ViewWithGaps, cluster, missing_after
from support.objects.builders import (
    labeled_namespace,
    node,
    persistent_volume,
    persistent_volume_claim,
    review,
    share_manager,
    virt_launcher_pod,
    vm_pod,
)
from support.objects.fleets import LATEST

from webhook.core import refs
from webhook.core.admit import Answer, Entry, admit
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.decision import Leave, Pin, decision_sentence
from webhook.core.evidence.consumers import find_vms
from webhook.core.observe.events import events_for
from webhook.core.observe.vm_state import vm_status_of
from webhook.core.opt_in import Mode, OptedInBy, OptIn, OptInAll, Policy, asked_value, opts_in, parse_opt_in
from webhook.core.placement.virt_launcher import place_virt_launcher
from webhook.core.reasons import Reason
from webhook.core.view import Kind, NoObject, ObjectRef

Object = dict[str, Any]
VALUES = (None, "true", "required", "preferred", "false", "yes", "")
SETTINGS: tuple[OptInAll, ...] = ("off", "true", "required", "preferred")
NAMESPACE_REF = ObjectRef(Kind.NAMESPACE, NamespacedName("", "vms"))
SERVED = [
    persistent_volume_claim("a", volume_name="pv"),
    persistent_volume("pv", claim="a"),
    share_manager("pv", state="running", ownerID="n1"),
    node("n1"),
]
LABELED = [*SERVED, labeled_namespace("vms", "true")]


@pytest.mark.parametrize("mode", Mode)
def test_the_first_that_says_anything_decides(mode: Mode) -> None:
    """Every combination. The setting off says nothing, while off as the cluster's mode says no to the value true."""
    for annotation, label, setting in product(VALUES, VALUES, SETTINGS):
        check_who_decides(annotation, label, setting, mode)


def check_who_decides(annotation: str | None, label: str | None, setting: OptInAll, mode: Mode) -> None:
    """The answer is that of the first of these three that says anything."""
    policy = Policy(mode, opt_in_all=setting)
    found = parse_opt_in(annotation, label, "vms", policy)
    said = [(annotation, OptedInBy.VM), (label, OptedInBy.NAMESPACE), (setting, OptedInBy.CLUSTER)]
    value, by = next(((value, by) for value, by in said if value not in (None, "off")), (None, OptedInBy.CLUSTER))
    assert asked_value(annotation, label, policy) == (value, by)
    if isinstance(found, OptIn):
        assert opts_in(value)
        meant = mode if value == "true" else Mode(str(value))
        assert (found.mode, found.value, found.by) == (meant, value, by)
        return
    no = {
        (None, OptedInBy.CLUSTER): Reason.NOT_OPTED_IN,
        ("false", OptedInBy.VM): Reason.OPTED_OUT,
        ("false", OptedInBy.NAMESPACE): Reason.NAMESPACE_OPTED_OUT,
    }
    wrong = Reason.BAD_CO_SCHEDULE if by is OptedInBy.VM else Reason.BAD_NAMESPACE_LABEL
    expected = Reason.MODE_OFF if value == "true" else no.get((value, by), wrong)
    assert found.reason is expected
    assert mode is Mode.OFF if value == "true" else not opts_in(value)


def launcher(opt_in: str | None = None, **parts: Any) -> Pod:
    """Return the start pod of a VM with the claim `a`."""
    return convert(virt_launcher_pod(claims=["a"], opt_in=opt_in, **parts), Pod)


def placed(pod: Pod, *objects: Object, policy: Policy | None = None) -> Pin | Leave:
    """Return the decision for the pod."""
    return place_virt_launcher(pod, "vms", cluster(*objects), policy or Policy())


def test_the_decision_names_the_label() -> None:
    """The annotation does, for a pin, a preference and a pod left unchanged."""
    pin = decision_sentence(placed(launcher(), *LABELED))
    assert pin.startswith("required on n1: ")
    assert pin.endswith("; opted in by the Namespace's label")
    preferred = decision_sentence(placed(launcher(), *SERVED, labeled_namespace("vms", "preferred")))
    why = "PreferredMode: the Namespace's label asks for mode preferred"
    assert preferred.endswith(f"; opted in by the Namespace's label; not required, because {why}")
    left = decision_sentence(placed(launcher(), labeled_namespace("vms", "true")))
    assert left.endswith("; opted in by the Namespace's label")


def test_an_annotation_needs_no_namespace() -> None:
    """The Namespace is not even read, and the decision does not mention it."""
    view = ViewWithGaps(cluster(*LABELED), {NAMESPACE_REF: MISSING})
    pin = place_virt_launcher(launcher("true"), "vms", view, Policy())
    assert isinstance(pin, Pin)
    assert "opted in by" not in decision_sentence(pin)
    out = place_virt_launcher(launcher("false"), "vms", view, Policy(opt_in_all="required"))
    assert isinstance(out, Leave)
    assert out.why.reason is Reason.OPTED_OUT


def test_a_namespace_that_is_not_cached_is_read_first() -> None:
    """By every caller: starts, share-managers, and the row of the VM has no guess."""
    view = ViewWithGaps(cluster(*LABELED), {NAMESPACE_REF: MISSING})
    need = [NAMESPACE_REF]
    assert missing_after(view, lambda view: place_virt_launcher(launcher(), "vms", view, Policy())) == need
    pods = [vm_pod(name, claims=["a"], opt_in=None, node="n1") for name in "xy"]
    consumed = ViewWithGaps(cluster(*LABELED, *pods), {NAMESPACE_REF: MISSING})
    assert missing_after(consumed, lambda view: find_vms("pv", view, Policy())) == need
    assert vm_status_of([convert(pods[0], Pod)], consumed, Policy(), LATEST) is None


def test_a_namespace_that_can_not_be_read_pins_nothing() -> None:
    """Not even where the cluster's setting opts all in: the label may be false. The reason says so."""
    view = ViewWithGaps(cluster(*LABELED), {NAMESPACE_REF: NoObject.UNAVAILABLE})
    found = place_virt_launcher(launcher(), "vms", view, Policy(opt_in_all="required"))
    assert isinstance(found, Leave)
    assert (found.why.reason, found.opted_in) == (Reason.NAMESPACE_LOOKUP_FAILED, False)
    assert "Namespace could not be read (503 for a test)" in found.why.sentence


def test_a_pod_that_only_the_api_server_knows_needs_its_namespace_too() -> None:
    """A ticket names the node of a pod that no cache has."""
    here = refs.virt_launchers_on("vms", "n1")
    pod = vm_pod("x", claims=["a"], opt_in=None, node="n1")
    ticket = {
        "apiVersion": "longhorn.io/v1beta2",
        "kind": "VolumeAttachment",
        "metadata": {"name": "pv", "namespace": "longhorn-system"},
        "spec": {"attachmentTickets": {"t": {"type": "csi-attacher", "nodeID": "n1"}}},
    }
    unseen = {ObjectRef(Kind.VIRT_LAUNCHER_POD, NamespacedName("vms", "a")): NoObject.UNAVAILABLE}
    whole = cluster(*LABELED, pod, ticket)
    for ref in (here, NAMESPACE_REF):
        view = ViewWithGaps(whole, {**unseen, ref: MISSING})
        assert missing_after(view, lambda view: find_vms("pv", view, Policy())) == [ref]
    [finding] = [*find_vms("pv", ViewWithGaps(whole, unseen), Policy())]
    assert finding.node == "n1"


def test_the_row_of_a_vm_says_who_opted_it_in() -> None:
    """`status`, the page and the metrics show it."""
    pod = convert(vm_pod("x", claims=["a"], opt_in=None, node="n1"), Pod)
    row = vm_status_of([pod], cluster(*LABELED), Policy(), LATEST)
    assert row is not None
    assert (row.asked, row.by, row.mode) == ("true", OptedInBy.NAMESPACE, Mode.REQUIRED)
    row = vm_status_of([pod], cluster(*SERVED), Policy(opt_in_all="preferred"), LATEST)
    assert row is not None
    assert (row.asked, row.by, row.mode) == ("preferred", OptedInBy.CLUSTER, Mode.PREFERRED)
    assert vm_status_of([pod], cluster(*SERVED), Policy(), LATEST) is None


def admitted(pod: Object, gap: NoObject | None) -> Answer:
    """Return the answer about the start pod in a Namespace with a wrong label."""
    view = ViewWithGaps(cluster(*SERVED, labeled_namespace("vms", "yes")), {} if gap is None else {NAMESPACE_REF: gap})
    found = admit(json.dumps(review(pod)).encode(), view, Policy())
    assert isinstance(found, Answer)
    return found


@pytest.mark.parametrize(
    ("gap", "code", "warns"),
    [
        pytest.param(None, "BadNamespaceLabel", True, id="a wrong value"),
        pytest.param(NoObject.UNAVAILABLE, "NamespaceLookupFailed", False, id="not read"),
    ],
)
def test_a_label_that_can_not_count_is_an_event_as_a_wrong_annotation_is(
    gap: NoObject | None,
    code: str,
    warns: bool,  # noqa: FBT001 - a row
) -> None:
    """The pod stays as it is; the VM has an Event, and the client that creates the pod a warning of a wrong value."""
    answer = admitted(virt_launcher_pod(claims=["a"], opt_in=None), gap)
    [event] = events_for(answer, Entry.VIRT_LAUNCHER)
    assert (event.reason, event.warning, list(answer.operations)) == ("NotCoScheduled", True, [])
    assert event.message.startswith(f"{code}: ")
    warnings = json.loads(answer.body)["response"].get("warnings", [])
    assert warnings == ([answer.decision.why.sentence] if warns else [])


def test_a_row_needs_its_namespace() -> None:
    """To know whether the VM is opted in already."""
    pods = [convert(vm_pod("x", claims=["a"], opt_in=None, node="n1"), Pod)]
    for objects, opted_in in ((LABELED, True), (SERVED, False)):
        found = vm_status_of(pods, cluster(*objects), Policy(), LATEST, even_unasked=True)
        assert found is not None
        assert (found.not_asked is None) is opted_in


def test_a_wrong_annotation_value_is_shown_short_and_in_ascii() -> None:
    """It becomes a warning, which is an HTTP header of the API server."""
    sentence = placed(launcher("é\r\n" * 10_000)).why.sentence
    assert len(sentence) < 700
    assert sentence.isascii()
    assert sentence.isprintable()
