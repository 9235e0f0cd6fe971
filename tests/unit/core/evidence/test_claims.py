from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import Patchy, cluster
from support.objects.builders import (
    persistent_volume,
    persistent_volume_claim,
    share_manager,
    share_manager_pod,
    virt_launcher_pod,
)

from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.evidence.finding import Finding
from webhook.core.evidence.share_managers import bound_volumes, resolve
from webhook.core.reasons import Reason
from webhook.core.view import Kind, NeedObjects, NoObject, ObjectRef, Ref

CLAIM = ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "disk"))
VOLUME = ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "pv"))
MANAGER = ObjectRef(Kind.SHARE_MANAGER, NamespacedName("", "h"))
MANAGER_POD = ObjectRef(Kind.SHARE_MANAGER_POD, NamespacedName("", "share-manager-h"))

PVC = persistent_volume_claim("disk", volume_name="pv")
PV = persistent_volume("pv", claim="disk", handle="h")
BOUND = [PVC, PV]
RUNNING = share_manager("h", state="running", ownerID="n1")
ON_N1 = share_manager_pod("h", nodeName="n1")


def pod(*claims: str, **parts: Any) -> Pod:
    """A launcher pod with these claims."""
    return convert(virt_launcher_pod(claims=claims, **parts), Pod)


def finding(*objects: dict[str, Any], gaps: dict[Ref, NoObject] | None = None) -> Finding:
    """What the claim `disk` leads to in a cluster of these objects."""
    found = resolve(pod("disk"), "vms", Patchy(cluster(*objects), gaps or {}))
    assert isinstance(found, list)
    (only,) = found
    return only


def volume(**fields: Any) -> dict[str, Any]:
    """The PersistentVolume with its CSI source changed."""
    return {**PV, "spec": {**PV["spec"], "csi": {**PV["spec"]["csi"], **fields}}}


def claim(**fields: Any) -> dict[str, Any]:
    """The claim with fields of its spec changed."""
    return {**PVC, "spec": {**PVC["spec"], **fields}}


@pytest.mark.parametrize(
    ("objects", "reason", "told"),
    [
        pytest.param([], Reason.CLAIM_NOT_FOUND, "namespace vms", id="no claim"),
        pytest.param(
            [persistent_volume_claim("disk", namespace="other", volume_name="pv"), PV],
            Reason.CLAIM_NOT_FOUND,
            "disk",
            id="a claim of another namespace",
        ),
        pytest.param([persistent_volume_claim("disk")], Reason.CLAIM_NOT_BOUND, "Pending", id="pending"),
        pytest.param(
            [persistent_volume_claim("disk", volume_name="pv", phase="Lost"), PV],
            Reason.CLAIM_NOT_BOUND,
            "Lost",
            id="lost, with a volume's name",
        ),
        pytest.param([{**PVC, "spec": None}, PV], Reason.CLAIM_NOT_BOUND, "disk", id="no spec"),
        pytest.param([claim(volumeName=""), PV], Reason.CLAIM_NOT_BOUND, "disk", id="an empty volume name"),
        pytest.param([PVC], Reason.VOLUME_NOT_FOUND, "pv", id="no volume"),
    ],
)
def test_a_claim_without_a_volume_leaves_the_question_open(
    objects: list[dict[str, Any]], reason: Reason, told: str
) -> None:
    """It may be bound anywhere yet, so nothing may be required of the pod."""
    found = finding(*objects)
    assert found.why.reason is reason
    assert told in found.why.sentence
    assert (found.open, bound_volumes([found]), found.node, found.firm) == (True, [], None, False)


@pytest.mark.parametrize(
    ("objects", "reason", "told"),
    [
        pytest.param(
            [claim(accessModes=["ReadWriteOnce", "ReadWriteOncePod"]), PV, RUNNING, ON_N1],
            Reason.CLAIM_NOT_READ_WRITE_MANY,
            "ReadWriteOnce, ReadWriteOncePod",
            id="neither ReadWriteMany nor ReadOnlyMany",
        ),
        pytest.param([claim(accessModes=None), PV], Reason.CLAIM_NOT_READ_WRITE_MANY, "none", id="no access modes"),
        pytest.param([PVC, volume(driver="x.io")], Reason.VOLUME_NOT_LONGHORN, "pv", id="another driver"),
        pytest.param([PVC, volume(volumeHandle="")], Reason.VOLUME_NOT_LONGHORN, "pv", id="an empty handle"),
        pytest.param(
            [PVC, persistent_volume("pv", claim="disk", driver=None)], Reason.VOLUME_NOT_LONGHORN, "pv", id="no CSI"
        ),
        pytest.param([PVC, {**PV, "spec": None}], Reason.VOLUME_NOT_LONGHORN, "pv", id="no spec"),
        pytest.param(
            [PVC, volume(volumeAttributes={"migratable": "true"})],
            Reason.VOLUME_IS_BLOCK,
            "migratable",
            id="migratable",
        ),
        pytest.param(
            [PVC, volume(volumeAttributes={"migratable": "T"})],
            Reason.VOLUME_IS_BLOCK,
            "migratable",
            id="as Go reads it",
        ),
        pytest.param([claim(volumeMode="Block"), PV], Reason.VOLUME_IS_BLOCK, "Block", id="a Block claim"),
        pytest.param(
            [PVC, persistent_volume("pv", claim="disk", handle="h", volume_mode="Block")],
            Reason.VOLUME_IS_BLOCK,
            "Block",
            id="a Block volume",
        ),
        pytest.param(BOUND, Reason.SHARE_MANAGER_NOT_FOUND, "h", id="no ShareManager"),
        pytest.param([*BOUND, ON_N1], Reason.SHARE_MANAGER_NOT_FOUND, "h", id="a pod without its ShareManager"),
        pytest.param(
            [*BOUND, share_manager("pv", state="running", ownerID="n1")],
            Reason.SHARE_MANAGER_NOT_FOUND,
            "h",
            id="named for the PersistentVolume and not the handle",
        ),
    ],
)
def test_a_bound_claim_without_a_share_manager_is_settled(
    objects: list[dict[str, Any]], reason: Reason, told: str
) -> None:
    """It leads to no node; its volume is known, and feasibility asks it."""
    found = finding(*objects)
    assert found.why.reason is reason
    assert told in found.why.sentence
    assert (found.open, found.node, found.firm) == (False, None, False)
    assert [bound.claim for bound in bound_volumes([found])] == ["disk"]


LOCAL = {"dataLocality": "strict-local"}


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param(
            [claim(accessModes=["ReadWriteOnce"]), volume(volumeAttributes=LOCAL)],
            Reason.VOLUME_STRICT_LOCAL,
            id="for one node",
        ),
        pytest.param(
            [PVC, volume(volumeAttributes=LOCAL | {"migratable": "true"})], Reason.VOLUME_STRICT_LOCAL, id="migratable"
        ),
        pytest.param(
            [claim(accessModes=["ReadWriteOnce"]), volume(volumeAttributes=LOCAL, driver="x.io")],
            Reason.CLAIM_NOT_READ_WRITE_MANY,
            id="another driver's",
        ),
        pytest.param(
            [claim(accessModes=["ReadWriteOnce"]), volume(volumeAttributes={"dataLocality": "disabled"})],
            Reason.CLAIM_NOT_READ_WRITE_MANY,
            id="another locality",
        ),
        pytest.param(
            [PVC, volume(volumeAttributes=LOCAL), RUNNING, ON_N1], Reason.SHARE_MANAGER_POD, id="one that is served"
        ),
    ],
)
def test_a_strict_local_volume_leaves_the_question_open(objects: list[dict[str, Any]], reason: Reason) -> None:
    """It is attached on one node only, and which one is not known; feasibility asks its volume all the same."""
    found = finding(*objects)
    assert (found.why.reason, found.open) == (reason, reason is Reason.VOLUME_STRICT_LOCAL)
    assert [bound.claim for bound in bound_volumes([found])] == ["disk"]


def manager(**status: Any) -> list[dict[str, Any]]:
    """The bound claim and a ShareManager with this status."""
    return [*BOUND, share_manager("h", **status)]


def with_pod(node: str | None = None, **parts: Any) -> list[dict[str, Any]]:
    """The bound claim, its ShareManager running by n1's manager, and its pod."""
    return [*BOUND, RUNNING, share_manager_pod("h", **({"nodeName": node} if node else {}), **parts)]


@pytest.mark.parametrize(
    ("objects", "reason", "node", "firm"),
    [
        pytest.param(manager(state="running", ownerID="n1"), Reason.SHARE_MANAGER_OWNER, "n1", True, id="running"),
        pytest.param(manager(state="starting", ownerID="n1"), Reason.SHARE_MANAGER_OWNER, "n1", True, id="starting"),
        pytest.param(manager(ownerID="n1"), Reason.SHARE_MANAGER_OWNER, "n1", True, id="no state"),
        pytest.param(manager(state="", ownerID="n1"), Reason.SHARE_MANAGER_OWNER, "n1", True, id="an empty state"),
        pytest.param(manager(state="stopped", ownerID="n1"), Reason.SHARE_MANAGER_NO_NODE, None, False, id="stopped"),
        pytest.param(manager(state="stopping", ownerID="n1"), Reason.SHARE_MANAGER_NO_NODE, None, False, id="stopping"),
        pytest.param(manager(state="error", ownerID="n1"), Reason.SHARE_MANAGER_NO_NODE, None, False, id="error"),
        pytest.param(manager(state="unknown", ownerID="n1"), Reason.SHARE_MANAGER_NO_NODE, None, False, id="unknown"),
        pytest.param(manager(state="running", ownerID=""), Reason.SHARE_MANAGER_NO_NODE, None, False, id="no owner"),
        pytest.param([*BOUND, {**RUNNING, "status": None}], Reason.SHARE_MANAGER_NO_NODE, None, False, id="no status"),
        pytest.param(manager(ownerID="Bad_Name"), Reason.NODE_NAME_INVALID, None, False, id="no node's name"),
        pytest.param(with_pod("Bad_Name"), Reason.NODE_NAME_INVALID, None, False, id="nor a pod's"),
        pytest.param(with_pod("n1"), Reason.SHARE_MANAGER_POD, "n1", True, id="pod and owner agree"),
        pytest.param(with_pod("n2"), Reason.SHARE_MANAGER_POD, "n2", True, id="the pod outweighs the owner"),
        pytest.param(with_pod("n2", phase="Pending"), Reason.SHARE_MANAGER_POD, "n2", True, id="a pod that starts"),
        pytest.param(with_pod("n2", phase=None), Reason.SHARE_MANAGER_POD, "n2", True, id="a pod without a phase"),
        pytest.param(with_pod(), Reason.SHARE_MANAGER_UNSCHEDULED, "n1", False, id="a pod on no node yet"),
        pytest.param(with_pod("n2", deleting=True), Reason.SHARE_MANAGER_OWNER, "n1", True, id="a terminating pod"),
        pytest.param(with_pod("n2", phase="Failed"), Reason.SHARE_MANAGER_OWNER, "n1", True, id="a failed pod"),
        pytest.param(with_pod("n2", phase="Succeeded"), Reason.SHARE_MANAGER_OWNER, "n1", True, id="a pod that ended"),
        pytest.param(
            [*manager(state="error", ownerID="n1"), ON_N1],
            Reason.SHARE_MANAGER_POD,
            "n1",
            True,
            id="a pod in any state",
        ),
        pytest.param(
            [*BOUND, {**RUNNING, "status": None}, ON_N1], Reason.SHARE_MANAGER_POD, "n1", True, id="a pod and no status"
        ),
        pytest.param(
            [claim(accessModes=["ReadOnlyMany"]), PV, RUNNING, ON_N1],
            Reason.SHARE_MANAGER_POD,
            "n1",
            True,
            id="a volume that many may only read",
        ),
    ],
)
def test_evidence_of_a_node(objects: list[dict[str, Any]], reason: Reason, node: str | None, *, firm: bool) -> None:
    """The live pod first, then ownerID while it means something; an unscheduled pod makes ownerID a hint."""
    found = finding(*objects)
    assert (found.why.reason, found.node, found.firm) == (reason, node, firm)
    assert found.volume_handle == "h"
    assert not found.open


def test_a_pod_that_outweighs_the_owner_says_so() -> None:
    """Whoever reads the reason sees both; where they agree there is nothing to say."""
    assert "outweighs ShareManager ownerID n1" in finding(*with_pod("n2")).why.sentence
    assert "outweighs" not in finding(*with_pod("n1")).why.sentence


def test_a_hostile_node_name_is_shown_short_and_in_ascii() -> None:
    """It reaches logs and annotations."""
    sentence = finding(*manager(ownerID="é\n" * 1000)).why.sentence
    assert len(sentence) < 400
    assert sentence.isascii()
    assert sentence.isprintable()


@pytest.mark.parametrize(
    ("lost", "reason", "node", "firm", "is_open"),
    [
        pytest.param([CLAIM], Reason.CLAIM_LOOKUP_FAILED, None, False, True, id="the claim"),
        pytest.param([VOLUME], Reason.CLAIM_LOOKUP_FAILED, None, False, True, id="the volume"),
        pytest.param([MANAGER], Reason.SHARE_MANAGER_POD, "n1", True, False, id="the ShareManager: the pod is enough"),
        pytest.param([MANAGER, MANAGER_POD], Reason.CLAIM_LOOKUP_FAILED, None, False, False, id="both"),
        pytest.param([MANAGER_POD], Reason.SHARE_MANAGER_POD_UNREAD, "n1", False, False, id="the pod: a hint is left"),
    ],
)
def test_what_could_not_be_read_weakens_the_evidence(
    lost: list[Ref], reason: Reason, node: str | None, *, firm: bool, is_open: bool
) -> None:
    """An answer that did not come is never taken for an absence."""
    found = finding(*BOUND, RUNNING, ON_N1, gaps=dict.fromkeys(lost, NoObject.UNAVAILABLE))
    assert (found.why.reason, found.node, found.firm, found.open) == (reason, node, firm, is_open)
    assert ("503 for a test" in found.why.sentence) == (reason is not Reason.SHARE_MANAGER_POD)


@pytest.mark.parametrize(
    ("unread", "refs"),
    [
        pytest.param([CLAIM, VOLUME, MANAGER, MANAGER_POD], (CLAIM,), id="the claim first"),
        pytest.param([VOLUME, MANAGER], (VOLUME,), id="then the volume"),
        pytest.param([MANAGER, MANAGER_POD], (MANAGER, MANAGER_POD), id="then both of the share-manager's"),
        pytest.param([MANAGER], (MANAGER,), id="the ShareManager alone"),
        pytest.param([MANAGER_POD], (MANAGER_POD,), id="the pod alone"),
    ],
)
def test_the_chain_is_read_link_by_link(unread: list[Ref], refs: tuple[Ref, ...]) -> None:
    """What lacks is asked for as soon as its name is known, and together where it can be."""
    view = Patchy(cluster(*BOUND, RUNNING), dict.fromkeys(unread, NoObject.NOT_CACHED))
    assert resolve(pod("disk"), "vms", view) == NeedObjects(refs)


def test_all_claims_are_asked_for_at_once() -> None:
    """One round of reading serves every claim; a claim that is answered waits for the others."""
    other = ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "state"))
    view = Patchy(cluster(*BOUND), {CLAIM: NoObject.NOT_CACHED, other: NoObject.NOT_CACHED})
    assert resolve(pod("disk", "absent", "state"), "vms", view) == NeedObjects((CLAIM, other))


def test_a_volume_that_two_claims_share_is_asked_for_once() -> None:
    """Needs never names an object twice."""
    twin = {**PVC, "metadata": {"name": "twin", "namespace": "vms"}}
    view = Patchy(cluster(*BOUND, twin, RUNNING), dict.fromkeys([MANAGER, MANAGER_POD], NoObject.NOT_CACHED))
    assert resolve(pod("disk", "twin"), "vms", view) == NeedObjects((MANAGER, MANAGER_POD))


@pytest.mark.parametrize(
    ("candidate", "claims"),
    [
        pytest.param(pod(), [], id="no volumes"),
        pytest.param(convert(virt_launcher_pod() | {"spec": {"volumes": None}}, Pod), [], id="null volumes"),
        pytest.param(pod(volumes=[{"name": "x", "configMap": {}}]), [], id="a volume of another kind"),
        pytest.param(pod("disk", "disk"), ["disk"], id="one claim, twice"),
        pytest.param(pod("b", "a"), ["b", "a"], id="in order of the volumes"),
        pytest.param(pod(volumes=[{"persistentVolumeClaim": {}}]), [""], id="a claim without a name"),
        pytest.param(pod(volumes=[{"name": "x", "persistentVolumeClaim": None}]), [], id="a null claim"),
    ],
)
def test_each_claim_has_one_finding(candidate: Pod, claims: list[str]) -> None:
    """None is lost, and none comes twice."""
    found = resolve(candidate, "vms", cluster())
    assert isinstance(found, list)
    assert [one.claim for one in found] == claims
    assert all(one.why.reason is Reason.CLAIM_NOT_FOUND for one in found)


@pytest.mark.parametrize(
    ("volume_name", "claim_name", "state"),
    [
        pytest.param("vm-state", "restore-1", True, id="by its volume"),
        pytest.param("disk-0", "persistent-state-for-db01-x7k2p", True, id="by its claim"),
        pytest.param("disk-0", "persistent-state", False, id="a disk"),
        pytest.param(None, "disk", False, id="a volume without a name"),
    ],
)
def test_kubevirts_state_is_known_by_its_names(volume_name: str | None, claim_name: str, *, state: bool) -> None:
    """A cache keeps no names of volumes, and a restore calls the claim as it likes."""
    volume = {"name": volume_name, "persistentVolumeClaim": {"claimName": claim_name}}
    found = resolve(pod(volumes=[volume]), "vms", cluster())
    assert isinstance(found, list)
    assert [one.state for one in found] == [state]


def test_an_ephemeral_volume_is_open_and_leads_nowhere() -> None:
    """Its claim is named after the pod, which has no name at CREATE."""
    found = resolve(pod("disk", ephemeral=["scratch"]), "vms", cluster(*BOUND, RUNNING))
    assert isinstance(found, list)
    reasons = {one.claim: (one.why.reason, one.open) for one in found}
    assert reasons == {
        "disk": (Reason.SHARE_MANAGER_OWNER, False),
        "scratch": (Reason.EPHEMERAL_CLAIM, True),
    }
