from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import Patchy, cluster
from support.objects.builders import longhorn_node, node, on_node, persistent_volume, virt_launcher_pod

from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.decision import NodeFit
from webhook.core.placement.feasibility import evaluate, why_not_evaluated
from webhook.core.reasons import Reason
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.incoming_pod import ClaimVolume, IncomingPod
from webhook.core.scheduler.state.snapshot import NOT_COUNTED
from webhook.core.view import ClusterView, Kind, NeedObjects, NoObject, ObjectRef, Ref

N1, LONGHORN_N1 = (
    ObjectRef(Kind.NODE, NamespacedName("", "n1")),
    ObjectRef(Kind.LONGHORN_NODE, NamespacedName("", "n1")),
)
ZONE_A = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}


def pod(**spec: Any) -> Pod:
    """A launcher pod with fields of its spec."""
    return convert(virt_launcher_pod(**spec), Pod)


def volume(*terms: dict[str, Any]) -> ClaimVolume:
    """A claim bound to a volume with these node affinity terms."""
    return ClaimVolume("disk", convert(persistent_volume("pv", claim="disk", terms=terms), PersistentVolume))


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    """A spec.affinity that requires one of the terms."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def evaluated(candidate: Pod, view: ClusterView, volumes: tuple[ClaimVolume, ...] = ()) -> NodeFit | NeedObjects:
    """What comes out for n1 if pods are not counted."""
    return evaluate("n1", CycleState(IncomingPod.of(candidate, "vms", volumes), NOT_COUNTED), view)


def verdict(candidate: Pod, *objects: dict[str, Any], volumes: tuple[ClaimVolume, ...] = ()) -> NodeFit:
    """The verdict on n1 in a cluster of these objects."""
    found = evaluated(candidate, cluster(*objects), volumes)
    assert isinstance(found, NodeFit)
    return found


HEALTHY = node("n1", labels={"zone": "a"})
PLAIN = pod()


@pytest.mark.parametrize(
    ("candidate", "there", "reason", "told"),
    [
        pytest.param(PLAIN, HEALTHY, Reason.NODE_FEASIBLE, "n1", id="a healthy node"),
        pytest.param(PLAIN, node("n2"), Reason.NODE_NOT_FOUND, "n1", id="no such node"),
        pytest.param(PLAIN, node("n1", deleting=True), Reason.NODE_BEING_DELETED, "n1", id="being deleted"),
        pytest.param(PLAIN, node("n1", ready="False"), Reason.NODE_NOT_READY, "n1", id="not Ready"),
        pytest.param(PLAIN, node("n1", ready="Unknown"), Reason.NODE_NOT_READY, "n1", id="Ready Unknown"),
        pytest.param(PLAIN, node("n1", ready=None), Reason.NODE_NOT_READY, "n1", id="Ready never posted"),
        pytest.param(PLAIN, {**HEALTHY, "status": None}, Reason.NODE_NOT_READY, "n1", id="no status"),
        pytest.param(PLAIN, {**HEALTHY, "spec": None}, Reason.NODE_FEASIBLE, "n1", id="no spec"),
        pytest.param(PLAIN, node("n1", cordoned=True), Reason.NODE_CORDONED, "n1", id="cordoned"),
        pytest.param(
            PLAIN, node("n1", taints=["a=b:NoSchedule"]), Reason.TAINT_NOT_TOLERATED, "a=b:NoSchedule", id="a taint"
        ),
        pytest.param(
            pod(nodeSelector={"zone": "b"}), HEALTHY, Reason.NODE_SELECTOR_MISMATCH, "zone=b", id="nodeSelector"
        ),
        pytest.param(
            pod(affinity=required(on_node("n2"))), HEALTHY, Reason.NODE_AFFINITY_MISMATCH, "n1", id="own affinity"
        ),
        pytest.param(
            pod(affinity=required(on_node("n2"), ZONE_A)), HEALTHY, Reason.NODE_FEASIBLE, "n1", id="own affinity met"
        ),
    ],
)
def test_a_node_is_judged_by_the_first_rule_that_refuses_it(
    candidate: Pod, there: dict[str, Any], reason: Reason, told: str
) -> None:
    """The reason and the detail that explains it; an infeasible node may still be preferred."""
    found = verdict(candidate, there)
    assert found.why.reason is reason
    assert told in found.why.sentence
    assert found.feasible is (reason is Reason.NODE_FEASIBLE)
    assert found.preferable


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        pytest.param(volume(ZONE_A), Reason.NODE_FEASIBLE, id="met"),
        pytest.param(
            volume({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}),
            Reason.VOLUME_AFFINITY_MISMATCH,
            id="not met",
        ),
    ],
)
def test_each_bound_volume_must_take_the_node(bound: ClaimVolume, reason: Reason) -> None:
    """Required node affinity of every PersistentVolume of the pod counts, that of local disks too."""
    assert verdict(PLAIN, HEALTHY, volumes=(volume(ZONE_A), bound)).why.reason is reason


@pytest.mark.parametrize(
    ("longhorn", "reason", "preferable"),
    [
        pytest.param([], Reason.NODE_FEASIBLE, True, id="the cluster shows no Longhorn nodes"),
        pytest.param([longhorn_node("n1")], Reason.NODE_FEASIBLE, True, id="Ready"),
        pytest.param([longhorn_node("n1", ready="False")], Reason.LONGHORN_NOT_READY, False, id="not Ready"),
        pytest.param([longhorn_node("n1", ready=None)], Reason.LONGHORN_NOT_READY, False, id="Ready never posted"),
        pytest.param([{**longhorn_node("n1"), "status": None}], Reason.LONGHORN_NOT_READY, False, id="no status"),
        pytest.param([longhorn_node("n2")], Reason.LONGHORN_NOT_READY, False, id="absent"),
    ],
)
def test_a_node_without_a_ready_longhorn_is_not_even_preferred(
    longhorn: list[dict[str, Any]], reason: Reason, *, preferable: bool
) -> None:
    """Longhorn would not attach the volume there."""
    found = verdict(PLAIN, HEALTHY, *longhorn)
    assert (found.why.reason, found.preferable) == (reason, preferable)


def test_a_reason_that_forbids_a_preference_comes_first() -> None:
    """A cordoned node without Longhorn: the webhook would still prefer a node that is only cordoned."""
    found = verdict(PLAIN, node("n1", cordoned=True), longhorn_node("n2"))
    assert (found.why.reason, found.preferable) == (Reason.LONGHORN_NOT_READY, False)


@pytest.mark.parametrize(
    ("gaps", "refs"),
    [
        pytest.param({N1: NoObject.NOT_CACHED}, (N1,), id="the node"),
        pytest.param({LONGHORN_N1: NoObject.NOT_CACHED}, (LONGHORN_N1,), id="Longhorn's node"),
        pytest.param({N1: NoObject.NOT_CACHED, LONGHORN_N1: NoObject.NOT_CACHED}, (N1, LONGHORN_N1), id="both at once"),
        pytest.param(
            {N1: NoObject.UNAVAILABLE, LONGHORN_N1: NoObject.NOT_CACHED}, (LONGHORN_N1,), id="one is given up"
        ),
    ],
)
def test_an_unread_node_is_asked_for(gaps: dict[Ref, NoObject], refs: tuple[Ref, ...]) -> None:
    """Everything that is lacking is asked for together."""
    assert evaluated(PLAIN, Patchy(cluster(HEALTHY, longhorn_node("n1")), gaps)) == NeedObjects(refs)


@pytest.mark.parametrize(
    ("lost", "kind"),
    [
        pytest.param(N1, "Node", id="the node"),
        pytest.param(LONGHORN_N1, "Longhorn Node", id="Longhorn's node"),
    ],
)
def test_a_node_that_could_not_be_read_is_preferred_and_not_feasible(lost: Ref, kind: str) -> None:
    """A lookup that failed says nothing of the node: it must not be required, and may be wished for."""
    found = evaluated(PLAIN, Patchy(cluster(HEALTHY, longhorn_node("n1")), {lost: NoObject.UNAVAILABLE}))
    assert isinstance(found, NodeFit)
    assert (found.why.reason, found.feasible, found.preferable) == (Reason.NODE_LOOKUP_FAILED, False, True)
    assert f"its {kind} could not be read (503 for a test)" in found.why.sentence


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"affinity": {"podAffinity": None, "podAntiAffinity": {}}}, None, id="null and empty"),
        pytest.param(
            {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}},
            None,
            id="preferred affinity",
        ),
        pytest.param(
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}}, None, id="no terms"
        ),
        pytest.param(
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
            Reason.INTER_POD_AFFINITY,
            id="required affinity",
        ),
        pytest.param(
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
            Reason.INTER_POD_AFFINITY,
            id="required anti-affinity",
        ),
        pytest.param({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, None, id="soft spread"),
        pytest.param(
            {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule", "topologyKey": "zone"}]},
            Reason.TOPOLOGY_SPREAD,
            id="hard spread",
        ),
        pytest.param({"topologySpreadConstraints": [{}]}, Reason.TOPOLOGY_SPREAD, id="a spread is hard by default"),
        pytest.param({"resourceClaims": [{"name": "gpu"}]}, Reason.RESOURCE_CLAIMS, id="resource claims"),
    ],
)
def test_rules_that_look_at_other_pods_or_devices_are_undecidable(spec: dict[str, Any], reason: Reason | None) -> None:
    """Whatever could refuse a node and is not evaluated here is named."""
    why = why_not_evaluated(CycleState(IncomingPod.of(pod(**spec), "vms"), NOT_COUNTED))
    assert (why.reason if why else None) is reason
