from __future__ import annotations

from typing import Any

import pytest
from support.fakes.views import MISSING, Gap, ViewWithGaps, cluster, missing_after
from support.objects.builders import persistent_volume, persistent_volume_claim, vm_pod, volume_attachment

from webhook.core import refs
from webhook.core.api.meta import NamespacedName
from webhook.core.evidence.consumers import find_vms
from webhook.core.evidence.facts import Finding
from webhook.core.opt_in import Policy
from webhook.core.reasons import Reason
from webhook.core.view import ClusterView, Kind, NoObject, ObjectRef, Ref

Object = dict[str, Any]
VOLUME = [persistent_volume_claim("disk", volume_name="h"), persistent_volume("h", claim="disk")]
VOLUME_REF = ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "h"))
TICKETS = ObjectRef(Kind.VOLUME_ATTACHMENT, NamespacedName("", "h"))
CACHE = ObjectRef(Kind.VIRT_LAUNCHER_POD, NamespacedName("vms", "disk"))


def pods_on(node: str, namespace: str = "vms") -> Ref:
    """Return the reference to the virt-launcher pods of a namespace on a node."""
    return refs.virt_launchers_on(namespace, node)


def vm(name: str, **parts: Any) -> Object:
    """Return the pod of a VM that uses the claim."""
    return vm_pod(name, **{"claims": ["disk"], **parts})


def tickets(*nodes: str) -> Object:
    """Return the volume's VolumeAttachment with csi-attacher tickets for these nodes."""
    return volume_attachment("h", [("csi-attacher", node) for node in nodes])


def resolved(*objects: Object, gaps: dict[Ref, Gap] | None = None) -> list[Finding]:
    """Return the findings for the volume in a cluster that has it; `gaps` are the answers that are missing."""
    view: ClusterView = ViewWithGaps(cluster(*VOLUME, *objects), gaps or {})
    return find_vms("h", view, Policy())


def found(*objects: Object, gaps: dict[Ref, Gap] | None = None) -> list[tuple[Reason, str | None]]:
    """Return the reason and node of each finding."""
    findings = resolved(*objects, gaps=gaps)
    assert isinstance(findings, list)
    return [(finding.why.reason, finding.node) for finding in findings]


@pytest.mark.parametrize(
    ("objects", "gaps", "refs"),
    [
        pytest.param([], {VOLUME_REF: MISSING}, [VOLUME_REF], id="which claim the volume has"),
        pytest.param([], {TICKETS: MISSING}, [TICKETS], id="nobody uses the volume, as far as is known"),
        pytest.param([vm("a")], {TICKETS: MISSING}, [TICKETS], id="a VM that is on no node"),
        pytest.param([vm("a", node="n1", opt_in=None)], {TICKETS: MISSING}, [TICKETS], id="only another VM"),
        pytest.param([vm("a", node="n1", phase="Failed")], {TICKETS: MISSING}, [TICKETS], id="a VM that ended"),
        pytest.param([], {CACHE: NoObject.UNAVAILABLE, TICKETS: MISSING}, [TICKETS], id="no cache of VMs"),
        pytest.param(
            [tickets("n2", "n1")],
            {pods_on("n1"): MISSING, pods_on("n2"): MISSING},
            [pods_on("n1"), pods_on("n2")],
            id="who a ticket is for, of all tickets at once",
        ),
        pytest.param(
            [tickets("n2", "n1"), vm("a", node="n1", opt_in=None)],
            {pods_on("n1"): MISSING, pods_on("n2"): MISSING},
            [pods_on("n2")],
            id="who a ticket is for, unless that is known",
        ),
        pytest.param(
            [tickets("n1"), persistent_volume("again", claim="again", handle="h")],
            {pods_on("n1"): MISSING},
            [pods_on("n1")],
            id="once for two claims of one namespace",
        ),
        pytest.param(
            [tickets("n1"), persistent_volume("again", claim="disk", handle="h", namespace="other")],
            {pods_on("n1"): MISSING, pods_on("n1", "other"): MISSING},
            [pods_on("n1"), pods_on("n1", "other")],
            id="in each namespace that has a claim",
        ),
        pytest.param(
            [tickets("n6", "n5", "n4", "n3", "n2", "n1")],
            {pods_on(f"n{i}"): MISSING for i in range(1, 7)},
            [pods_on(f"n{i}") for i in range(1, 5)],
            id="of four tickets at most",
        ),
    ],
)
def test_what_must_be_read(objects: list[Object], gaps: dict[Ref, Gap], refs: list[Ref]) -> None:
    """Only objects that can change the answer are read, and each reference is named once."""
    view = ViewWithGaps(cluster(*VOLUME, *objects), gaps)
    assert missing_after(view, lambda view: find_vms("h", view, Policy())) == refs


def test_a_lost_answer_for_one_ticket_does_not_hide_the_other() -> None:
    """Two tickets name two nodes. The node whose pods could be read has the VM."""
    expected = found(
        tickets("n1", "n2"), vm("a", node="n2"), gaps={CACHE: NoObject.UNAVAILABLE, pods_on("n1"): NoObject.UNAVAILABLE}
    )
    assert expected == [(Reason.CONSUMER_ON_NODE, "n2"), (Reason.VOLUME_LOOKUP_FAILED, None)]


@pytest.mark.parametrize(
    ("objects", "gaps", "reasons"),
    [
        pytest.param(
            [vm("a", node="n1")], {VOLUME_REF: NoObject.UNAVAILABLE}, [Reason.VOLUME_LOOKUP_FAILED], id="the volume"
        ),
        pytest.param([], {TICKETS: NoObject.UNAVAILABLE}, [Reason.VOLUME_LOOKUP_FAILED], id="the tickets"),
        pytest.param(
            [vm("a")],
            {TICKETS: NoObject.UNAVAILABLE},
            [Reason.CONSUMER_ON_NO_NODE, Reason.VOLUME_LOOKUP_FAILED],
            id="the tickets of a VM that is on no node",
        ),
        pytest.param(
            [tickets("n1")],
            {pods_on("n1"): NoObject.UNAVAILABLE},
            [Reason.VOLUME_LOOKUP_FAILED],
            id="the pods on a ticket's node",
        ),
    ],
)
def test_the_reason_shows_what_could_not_be_read(
    objects: list[Object], gaps: dict[Ref, Gap], reasons: list[Reason]
) -> None:
    """A missing answer never gives a node."""
    assert found(*objects, gaps=gaps) == [(reason, None) for reason in reasons]
