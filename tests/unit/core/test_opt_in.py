"""Who opts a VM in: its own annotation first, then its Namespace's label, then the cluster's setting."""

from __future__ import annotations

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
    share_manager,
    virt_launcher_pod,
    vm_pod,
)
from support.objects.fleets import LATEST

from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.decision import Leave, Pin
from webhook.core.evidence.consumers import find_vms
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


def test_a_wrong_annotation_value_is_shown_short_and_in_ascii() -> None:
    """It becomes a warning, which is an HTTP header of the API server."""
    sentence = placed(launcher("é\r\n" * 10_000)).why.sentence
    assert len(sentence) < 700
    assert sentence.isascii()
    assert sentence.isprintable()
