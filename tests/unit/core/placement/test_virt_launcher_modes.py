from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import cluster
from support.objects.builders import node, persistent_volume, persistent_volume_claim, share_manager, virt_launcher_pod

from webhook.core.api.admission_review import AdmissionRequest
from webhook.core.api.pod import Pod
from webhook.core.decision import Leave, Pin
from webhook.core.opt_in import Mode, Policy, not_a_pod_creation
from webhook.core.placement.virt_launcher import place_virt_launcher
from webhook.core.reasons import Reason
from webhook.core.view import NeedObjects

Object = dict[str, Any]
POD_KIND = {"group": "", "version": "v1", "kind": "Pod"}
CLUSTER = [
    persistent_volume_claim("a", volume_name="pv"),
    persistent_volume("pv", claim="a"),
    share_manager("pv", state="running", ownerID="n1"),
    node("n1"),
]


def decision(pod: Object, mode: Mode = Mode.REQUIRED) -> Pin | Leave:
    """Decide for a pod in a cluster in which its claim `a` leads to n1."""
    found = place_virt_launcher(convert(pod, Pod), "vms", cluster(*CLUSTER), Policy(mode=mode))
    assert not isinstance(found, NeedObjects)
    return found


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        pytest.param({"kind": POD_KIND, "operation": "CREATE"}, None, id="a pod's creation"),
        pytest.param({"kind": POD_KIND, "operation": "CREATE", "subResource": ""}, None, id="no subresource"),
        pytest.param({}, Reason.NOT_A_POD, id="no kind"),
        pytest.param({"kind": {**POD_KIND, "group": "apps"}, "operation": "CREATE"}, Reason.NOT_A_POD, id="a group"),
        pytest.param({"kind": {**POD_KIND, "version": "v2"}, "operation": "CREATE"}, Reason.NOT_A_POD, id="a version"),
        pytest.param({"kind": {**POD_KIND, "kind": "Node"}, "operation": "CREATE"}, Reason.NOT_A_POD, id="a kind"),
        pytest.param({"kind": POD_KIND, "operation": "UPDATE"}, Reason.NOT_A_CREATE, id="an update"),
        pytest.param({"kind": POD_KIND}, Reason.NOT_A_CREATE, id="no operation"),
        pytest.param(
            {"kind": POD_KIND, "operation": "CREATE", "subResource": "binding"}, Reason.SUBRESOURCE, id="a subresource"
        ),
    ],
)
def test_rule_1_only_the_creation_of_a_v1_pod(request_: Object, reason: Reason | None) -> None:
    """Every other request has a reason."""
    why = not_a_pod_creation(convert({"uid": "u", **request_}, AdmissionRequest))
    assert (why.reason if why else None) is reason


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(virt_launcher_pod(labels={"kubevirt.io": "hotplug-disk"}), Reason.NOT_VIRT_LAUNCHER, id="hotplug"),
        pytest.param({"metadata": {}, "spec": {}}, Reason.NOT_VIRT_LAUNCHER, id="no labels"),
        pytest.param(
            virt_launcher_pod(labels={"kubevirt.io/migrationJobUID": "x"}), Reason.MIGRATION_TARGET, id="a target"
        ),
        pytest.param(
            virt_launcher_pod(labels={"kubevirt.io/migrationJobUID": ""}), Reason.MIGRATION_TARGET, id="an empty uid"
        ),
        pytest.param(
            virt_launcher_pod(annotations={"kubevirt.io/create-migration-target": "true"}),
            Reason.MIGRATION_RECEIVER,
            id="a receiver",
        ),
        pytest.param(
            virt_launcher_pod(annotations={"kubevirt.io/create-migration-target": "false"}), Reason.NO_CLAIMS, id="none"
        ),
        pytest.param(
            virt_launcher_pod(annotations={"kubevirt.io/ephemeral-provisioning": "true"}),
            Reason.EPHEMERAL_PROVISIONING,
            id="a doppelganger",
        ),
        pytest.param(virt_launcher_pod(nodeName="n1"), Reason.NODE_ALREADY_SET, id="a node is set"),
        pytest.param(virt_launcher_pod(nodeName=""), Reason.NO_CLAIMS, id="an empty node name"),
        pytest.param(virt_launcher_pod(opt_in=None), Reason.NOT_OPTED_IN, id="no annotation"),
        pytest.param(virt_launcher_pod(opt_in="false"), Reason.OPTED_OUT, id="false"),
        pytest.param(virt_launcher_pod(opt_in="off"), Reason.BAD_CO_SCHEDULE, id="off is the cluster's alone"),
        pytest.param(virt_launcher_pod(opt_in=""), Reason.BAD_CO_SCHEDULE, id="empty"),
        pytest.param(virt_launcher_pod(opt_in="True"), Reason.BAD_CO_SCHEDULE, id="in capitals"),
        pytest.param(virt_launcher_pod(), Reason.NO_CLAIMS, id="opted in"),
    ],
)
def test_a_pod_outside_the_rules_stays_unchanged(pod: Object, reason: Reason) -> None:
    """Rules 2 to 4, in their order. Only a pod that opted in gets an annotation."""
    found = decision(pod)
    assert isinstance(found, Leave)
    assert (found.why.reason, found.opted_in) == (reason, reason is Reason.NO_CLAIMS)


@pytest.mark.parametrize(
    ("opt_in", "mode", "strength", "asker"),
    [
        pytest.param("true", Mode.REQUIRED, Mode.REQUIRED, None, id="the cluster requires"),
        pytest.param("true", Mode.PREFERRED, Mode.PREFERRED, "the cluster's setting", id="the cluster prefers"),
        pytest.param("required", Mode.PREFERRED, Mode.REQUIRED, None, id="the VM requires"),
        pytest.param("required", Mode.OFF, Mode.REQUIRED, None, id="the VM requires where the cluster is off"),
        pytest.param("preferred", Mode.REQUIRED, Mode.PREFERRED, "the VM", id="the VM prefers"),
    ],
)
def test_the_vm_chooses_the_mode_or_takes_the_clusters(
    opt_in: str, mode: Mode, strength: Mode, asker: str | None
) -> None:
    """Rule 4. The reason of a preference names who asked for it."""
    found = decision(virt_launcher_pod(claims=["a"], opt_in=opt_in), mode)
    assert isinstance(found, Pin)
    assert found.strength is strength
    assert found.nodes == ("n1",)
    assert (f"{asker} asks for mode preferred" in found.why.sentence) is (asker is not None)


def test_mode_off_leaves_a_pod_with_the_value_true_unchanged() -> None:
    """The operator can switch co-scheduling off."""
    found = decision(virt_launcher_pod(claims=["a"]), Mode.OFF)
    assert isinstance(found, Leave)
    assert (found.why.reason, found.opted_in) == (Reason.MODE_OFF, False)


def test_a_wrong_annotation_value_is_shown_short_and_in_ascii() -> None:
    """It becomes a warning, which is an HTTP header of the API server."""
    sentence = decision(virt_launcher_pod(opt_in="é\r\n" * 10_000)).why.sentence
    assert len(sentence) < 700
    assert sentence.isascii()
    assert sentence.isprintable()
