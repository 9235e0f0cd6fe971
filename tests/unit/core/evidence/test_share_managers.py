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
from webhook.core.evidence.finding import ClaimUse, Finding
from webhook.core.evidence.share_managers import bound_volumes, find_share_managers
from webhook.core.reasons import Reason
from webhook.core.view import Kind, NeedObjects, NoObject, ObjectRef, Ref

CLAIM = ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "disk"))
VOLUME = ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "pv"))
SHARE_MANAGER = ObjectRef(Kind.SHARE_MANAGER, NamespacedName("", "h"))
SHARE_MANAGER_POD = ObjectRef(Kind.SHARE_MANAGER_POD, NamespacedName("", "share-manager-h"))

BOUND_CLAIM = persistent_volume_claim("disk", volume_name="pv")
BOUND_VOLUME = persistent_volume("pv", claim="disk", handle="h")
BOUND = [BOUND_CLAIM, BOUND_VOLUME]
RUNNING = share_manager("h", state="running", ownerID="n1")
ON_N1 = share_manager_pod("h", nodeName="n1")


def pod(*claims: str, **parts: Any) -> Pod:
    """A launcher pod with these claims."""
    return convert(virt_launcher_pod(claims=claims, **parts), Pod)


def finding(*objects: dict[str, Any], gaps: dict[Ref, NoObject] | None = None) -> Finding:
    """What the claim `disk` leads to in a cluster of these objects."""
    found = find_share_managers(pod("disk"), "vms", Patchy(cluster(*objects), gaps or {}))
    assert isinstance(found, list)
    (only,) = found
    return only


def volume(**fields: Any) -> dict[str, Any]:
    """The PersistentVolume with its CSI source changed."""
    return {**BOUND_VOLUME, "spec": {**BOUND_VOLUME["spec"], "csi": {**BOUND_VOLUME["spec"]["csi"], **fields}}}


def claim(**fields: Any) -> dict[str, Any]:
    """The claim with fields of its spec changed."""
    return {**BOUND_CLAIM, "spec": {**BOUND_CLAIM["spec"], **fields}}


@pytest.mark.parametrize(
    ("objects", "reason", "part"),
    [
        pytest.param([], Reason.CLAIM_NOT_FOUND, "namespace vms", id="no claim"),
        pytest.param(
            [persistent_volume_claim("disk", namespace="other", volume_name="pv"), BOUND_VOLUME],
            Reason.CLAIM_NOT_FOUND,
            "disk",
            id="a claim of another namespace",
        ),
        pytest.param([persistent_volume_claim("disk")], Reason.CLAIM_NOT_BOUND, "Pending", id="pending"),
        pytest.param(
            [persistent_volume_claim("disk", volume_name="pv", phase="Lost"), BOUND_VOLUME],
            Reason.CLAIM_NOT_BOUND,
            "Lost",
            id="lost, with a volume's name",
        ),
        pytest.param([{**BOUND_CLAIM, "spec": None}, BOUND_VOLUME], Reason.CLAIM_NOT_BOUND, "disk", id="no spec"),
        pytest.param([claim(volumeName=""), BOUND_VOLUME], Reason.CLAIM_NOT_BOUND, "disk", id="an empty volume name"),
        pytest.param([BOUND_CLAIM], Reason.VOLUME_NOT_FOUND, "pv", id="no volume"),
    ],
)
def test_a_claim_without_a_volume_leaves_its_nodes_unknown(
    objects: list[dict[str, Any]], reason: Reason, part: str
) -> None:
    """It can still be bound anywhere, so no node may be required."""
    found = finding(*objects)
    assert found.why.reason is reason
    assert part in found.why.sentence
    assert (found.volume_nodes_unknown, bound_volumes([found]), found.node, found.firm) == (True, [], None, False)


@pytest.mark.parametrize(
    ("objects", "reason", "part"),
    [
        pytest.param(
            [claim(accessModes=["ReadWriteOnce", "ReadWriteOncePod"]), BOUND_VOLUME, RUNNING, ON_N1],
            Reason.CLAIM_NOT_READ_WRITE_MANY,
            "ReadWriteOnce, ReadWriteOncePod",
            id="neither ReadWriteMany nor ReadOnlyMany",
        ),
        pytest.param(
            [claim(accessModes=None), BOUND_VOLUME], Reason.CLAIM_NOT_READ_WRITE_MANY, "none", id="no access modes"
        ),
        pytest.param([BOUND_CLAIM, volume(driver="x.io")], Reason.VOLUME_NOT_LONGHORN, "pv", id="another driver"),
        pytest.param([BOUND_CLAIM, volume(volumeHandle="")], Reason.VOLUME_NOT_LONGHORN, "pv", id="an empty handle"),
        pytest.param(
            [BOUND_CLAIM, persistent_volume("pv", claim="disk", driver=None)],
            Reason.VOLUME_NOT_LONGHORN,
            "pv",
            id="no CSI",
        ),
        pytest.param([BOUND_CLAIM, {**BOUND_VOLUME, "spec": None}], Reason.VOLUME_NOT_LONGHORN, "pv", id="no spec"),
        pytest.param(
            [BOUND_CLAIM, volume(volumeAttributes={"migratable": "true"})],
            Reason.VOLUME_IS_BLOCK,
            "migratable",
            id="migratable",
        ),
        pytest.param(
            [BOUND_CLAIM, volume(volumeAttributes={"migratable": "T"})],
            Reason.VOLUME_IS_BLOCK,
            "migratable",
            id="as Go reads it",
        ),
        pytest.param([claim(volumeMode="Block"), BOUND_VOLUME], Reason.VOLUME_IS_BLOCK, "Block", id="a Block claim"),
        pytest.param(
            [BOUND_CLAIM, persistent_volume("pv", claim="disk", handle="h", volume_mode="Block")],
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
def test_a_bound_claim_without_a_share_manager_leads_to_no_node(
    objects: list[dict[str, Any]], reason: Reason, part: str
) -> None:
    """Its volume is known, and rule 7 evaluates it."""
    found = finding(*objects)
    assert found.why.reason is reason
    assert part in found.why.sentence
    assert (found.volume_nodes_unknown, found.node, found.firm) == (False, None, False)
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
            [BOUND_CLAIM, volume(volumeAttributes=LOCAL | {"migratable": "true"})],
            Reason.VOLUME_STRICT_LOCAL,
            id="migratable",
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
            [BOUND_CLAIM, volume(volumeAttributes=LOCAL), RUNNING, ON_N1],
            Reason.SHARE_MANAGER_POD,
            id="one that is served",
        ),
    ],
)
def test_a_strict_local_volume_leaves_its_nodes_unknown(objects: list[dict[str, Any]], reason: Reason) -> None:
    """Longhorn attaches it on one node only, which is not known. Rule 7 still evaluates the volume."""
    found = finding(*objects)
    assert (found.why.reason, found.volume_nodes_unknown) == (reason, reason is Reason.VOLUME_STRICT_LOCAL)
    assert [bound.claim for bound in bound_volumes([found])] == ["disk"]


def share_manager_with(**status: Any) -> list[dict[str, Any]]:
    """The bound claim and a ShareManager with this status."""
    return [*BOUND, share_manager("h", **status)]


def with_pod(node: str | None = None, **parts: Any) -> list[dict[str, Any]]:
    """The bound claim, its ShareManager running by n1's manager, and its pod."""
    return [*BOUND, RUNNING, share_manager_pod("h", **({"nodeName": node} if node else {}), **parts)]


@pytest.mark.parametrize(
    ("objects", "reason", "node", "firm"),
    [
        pytest.param(
            share_manager_with(state="running", ownerID="n1"), Reason.SHARE_MANAGER_OWNER, "n1", True, id="running"
        ),
        pytest.param(
            share_manager_with(state="starting", ownerID="n1"), Reason.SHARE_MANAGER_OWNER, "n1", True, id="starting"
        ),
        pytest.param(share_manager_with(ownerID="n1"), Reason.SHARE_MANAGER_OWNER, "n1", True, id="no state"),
        pytest.param(
            share_manager_with(state="", ownerID="n1"), Reason.SHARE_MANAGER_OWNER, "n1", True, id="an empty state"
        ),
        pytest.param(
            share_manager_with(state="stopped", ownerID="n1"), Reason.SHARE_MANAGER_NO_NODE, None, False, id="stopped"
        ),
        pytest.param(
            share_manager_with(state="stopping", ownerID="n1"), Reason.SHARE_MANAGER_NO_NODE, None, False, id="stopping"
        ),
        pytest.param(
            share_manager_with(state="error", ownerID="n1"), Reason.SHARE_MANAGER_NO_NODE, None, False, id="error"
        ),
        pytest.param(
            share_manager_with(state="unknown", ownerID="n1"), Reason.SHARE_MANAGER_NO_NODE, None, False, id="unknown"
        ),
        pytest.param(
            share_manager_with(state="running", ownerID=""), Reason.SHARE_MANAGER_NO_NODE, None, False, id="no owner"
        ),
        pytest.param([*BOUND, {**RUNNING, "status": None}], Reason.SHARE_MANAGER_NO_NODE, None, False, id="no status"),
        pytest.param(
            share_manager_with(ownerID="Bad_Name"), Reason.NODE_NAME_INVALID, None, False, id="no node's name"
        ),
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
            [*share_manager_with(state="error", ownerID="n1"), ON_N1],
            Reason.SHARE_MANAGER_POD,
            "n1",
            True,
            id="a pod in any state",
        ),
        pytest.param(
            [*BOUND, {**RUNNING, "status": None}, ON_N1], Reason.SHARE_MANAGER_POD, "n1", True, id="a pod and no status"
        ),
        pytest.param(
            [claim(accessModes=["ReadOnlyMany"]), BOUND_VOLUME, RUNNING, ON_N1],
            Reason.SHARE_MANAGER_POD,
            "n1",
            True,
            id="a volume that many may only read",
        ),
    ],
)
def test_evidence_of_a_node(objects: list[dict[str, Any]], reason: Reason, node: str | None, *, firm: bool) -> None:
    """The live pod comes first, then ownerID in a state in which it counts. An unscheduled pod makes ownerID a hint."""
    found = finding(*objects)
    assert (found.why.reason, found.node, found.firm) == (reason, node, firm)
    assert found.volume_handle == "h"
    assert not found.volume_nodes_unknown


def test_the_reason_shows_that_a_pod_outweighs_the_owner() -> None:
    """The reason names both nodes if they differ."""
    assert "outweighs ShareManager ownerID n1" in finding(*with_pod("n2")).why.sentence
    assert "outweighs" not in finding(*with_pod("n1")).why.sentence


def test_a_hostile_node_name_is_shown_short_and_in_ascii() -> None:
    """The name gets into logs and annotations."""
    sentence = finding(*share_manager_with(ownerID="é\n" * 1000)).why.sentence
    assert len(sentence) < 400
    assert sentence.isascii()
    assert sentence.isprintable()


@pytest.mark.parametrize(
    ("lost", "reason", "node", "firm", "nodes_unknown"),
    [
        pytest.param([CLAIM], Reason.CLAIM_LOOKUP_FAILED, None, False, True, id="the claim"),
        pytest.param([VOLUME], Reason.CLAIM_LOOKUP_FAILED, None, False, True, id="the volume"),
        pytest.param(
            [SHARE_MANAGER], Reason.SHARE_MANAGER_POD, "n1", True, False, id="the ShareManager: the pod is enough"
        ),
        pytest.param([SHARE_MANAGER, SHARE_MANAGER_POD], Reason.CLAIM_LOOKUP_FAILED, None, False, False, id="both"),
        pytest.param(
            [SHARE_MANAGER_POD], Reason.SHARE_MANAGER_POD_UNREAD, "n1", False, False, id="the pod: a hint is left"
        ),
    ],
)
def test_a_missing_answer_weakens_the_evidence(
    lost: list[Ref], reason: Reason, node: str | None, *, firm: bool, nodes_unknown: bool
) -> None:
    """A missing answer never counts as a missing object."""
    found = finding(*BOUND, RUNNING, ON_N1, gaps=dict.fromkeys(lost, NoObject.UNAVAILABLE))
    assert (found.why.reason, found.node, found.firm, found.volume_nodes_unknown) == (reason, node, firm, nodes_unknown)
    assert ("503 for a test" in found.why.sentence) == (reason is not Reason.SHARE_MANAGER_POD)


@pytest.mark.parametrize(
    ("unread", "refs"),
    [
        pytest.param([CLAIM, VOLUME, SHARE_MANAGER, SHARE_MANAGER_POD], (CLAIM,), id="the claim first"),
        pytest.param([VOLUME, SHARE_MANAGER], (VOLUME,), id="then the volume"),
        pytest.param(
            [SHARE_MANAGER, SHARE_MANAGER_POD],
            (SHARE_MANAGER, SHARE_MANAGER_POD),
            id="then both of the share-manager's",
        ),
        pytest.param([SHARE_MANAGER], (SHARE_MANAGER,), id="the ShareManager alone"),
        pytest.param([SHARE_MANAGER_POD], (SHARE_MANAGER_POD,), id="the pod alone"),
    ],
)
def test_the_chain_is_read_link_by_link(unread: list[Ref], refs: tuple[Ref, ...]) -> None:
    """Each object is needed as soon as its name is known; objects are read together if their names are known."""
    view = Patchy(cluster(*BOUND, RUNNING), dict.fromkeys(unread, NoObject.NOT_CACHED))
    assert find_share_managers(pod("disk"), "vms", view) == NeedObjects(refs)


def test_all_claims_are_asked_for_at_once() -> None:
    """One round of reads serves all claims."""
    other = ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "state"))
    view = Patchy(cluster(*BOUND), {CLAIM: NoObject.NOT_CACHED, other: NoObject.NOT_CACHED})
    assert find_share_managers(pod("disk", "absent", "state"), "vms", view) == NeedObjects((CLAIM, other))


def test_a_volume_that_two_claims_share_is_asked_for_once() -> None:
    """NeedObjects never names an object twice."""
    twin = {**BOUND_CLAIM, "metadata": {"name": "twin", "namespace": "vms"}}
    view = Patchy(
        cluster(*BOUND, twin, RUNNING), dict.fromkeys([SHARE_MANAGER, SHARE_MANAGER_POD], NoObject.NOT_CACHED)
    )
    assert find_share_managers(pod("disk", "twin"), "vms", view) == NeedObjects((SHARE_MANAGER, SHARE_MANAGER_POD))


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
    """No claim is lost, and none comes twice."""
    found = find_share_managers(candidate, "vms", cluster())
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
def test_the_claim_of_the_vms_state_is_known_by_its_names(
    volume_name: str | None, claim_name: str, *, state: bool
) -> None:
    """One of the two names is enough.

    A restored claim has another name than KubeVirt's, and a cache stores no names of volumes.
    """
    volume = {"name": volume_name, "persistentVolumeClaim": {"claimName": claim_name}}
    found = find_share_managers(pod(volumes=[volume]), "vms", cluster())
    assert isinstance(found, list)
    assert [one.use is ClaimUse.STATE for one in found] == [state]


def test_the_nodes_of_an_ephemeral_volume_are_unknown() -> None:
    """Its claim gets its name from the pod, which has no name at CREATE."""
    found = find_share_managers(pod("disk", ephemeral=["scratch"]), "vms", cluster(*BOUND, RUNNING))
    assert isinstance(found, list)
    reasons = {one.claim: (one.why.reason, one.volume_nodes_unknown) for one in found}
    assert reasons == {
        "disk": (Reason.SHARE_MANAGER_OWNER, False),
        "scratch": (Reason.EPHEMERAL_CLAIM, True),
    }
