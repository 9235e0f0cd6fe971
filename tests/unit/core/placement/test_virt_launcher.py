from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import Patchy, cluster
from support.objects.builders import (
    longhorn_node,
    node,
    on_node,
    persistent_volume,
    persistent_volume_claim,
    share_manager,
    share_manager_pod,
    virt_launcher_pod,
)

from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.decision import Leave, Pin, WeightedNode, decision_sentence
from webhook.core.opt_in import Policy
from webhook.core.placement.virt_launcher import place_virt_launcher
from webhook.core.reasons import Reason
from webhook.core.view import Kind, NeedObjects, NoObject, ObjectRef, Ref

Object = dict[str, Any]
SPREAD = [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]


def disk(name: str, on: str, *, firm: bool = True) -> list[Object]:
    """Return the objects from one claim to a share-manager on a node. Without `firm` its pod is not scheduled yet."""
    chain = [
        persistent_volume_claim(name, volume_name=f"pv-{name}"),
        persistent_volume(f"pv-{name}", claim=name, handle=f"h-{name}"),
        share_manager(f"h-{name}", state="running", ownerID=on),
    ]
    return chain if firm else [*chain, share_manager_pod(f"h-{name}")]


def decision(pod: Object, *objects: Object) -> Pin | Leave:
    """Decide for a pod in a cluster of these objects."""
    found = place_virt_launcher(convert(pod, Pod), "vms", cluster(*objects), Policy())
    assert not isinstance(found, NeedObjects)
    return found


def pin(*objects: Object, claims: str = "a", **parts: Any) -> Pin:
    """Return the pin of a pod with these claims (a letter each)."""
    found = decision(virt_launcher_pod(claims=list(claims), **parts), *objects)
    assert isinstance(found, Pin)
    return found


@pytest.mark.parametrize(
    ("homes", "required", "preferred"),
    [
        pytest.param("b", "b", {"b": 100}, id="one volume"),
        pytest.param("bb", "b", {"b": 100}, id="two on one node"),
        pytest.param("ba", "ab", {"a": 100, "b": 100}, id="a tie goes by name"),
        pytest.param("bba", "ba", {"b": 100, "a": 50}, id="two to one"),
        pytest.param("bbba", "ba", {"b": 100, "a": 33}, id="three to one"),
        pytest.param("bbbaa", "ba", {"b": 100, "a": 67}, id="three to two"),
        pytest.param("b" * 8 + "aaa", "ba", {"b": 100, "a": 38}, id="a half is rounded up"),
        pytest.param("b" * 201 + "a", "ba", {"b": 100, "a": 1}, id="never under 1"),
        pytest.param("b" * 201 + "ac", "bac", {"b": 100, "a": 1, "c": 1}, id="nor for several"),
    ],
)
def test_several_share_managers_share_the_weight(homes: str, required: str, preferred: dict[str, int]) -> None:
    """Rule 8: any of the nodes is required, and the node with the most volumes has the highest weight."""
    claims = [f"c{index}" for index in range(len(homes))]
    objects = [part for name, home in zip(claims, homes, strict=True) for part in disk(name, home)]
    found = decision(virt_launcher_pod(claims=claims), *objects, *map(node, set(homes)))
    assert isinstance(found, Pin)
    assert found.required == tuple(required)
    assert {weighted.node: weighted.weight for weighted in found.preferred} == preferred
    assert found.preferred[0].weight == 100


def test_a_volume_that_two_claims_share_counts_once() -> None:
    """Share-managers are counted, not claims."""
    twin = persistent_volume_claim("t", volume_name="pv-a")
    found = pin(*disk("a", "n1"), twin, *disk("b", "n0"), node("n0"), node("n1"), claims="atb")
    assert found.preferred == (WeightedNode("n0", 100), WeightedNode("n1", 100))


def test_without_short_lists_a_preference_stands_alone() -> None:
    """The operator's choice, for a cluster with an autoscaler."""
    objects = [*disk("a", "n1"), *(node(f"n{index}") for index in range(110))]
    pod, view = convert(virt_launcher_pod(claims=["a"], opt_in="preferred"), Pod), cluster(*objects)
    found = [place_virt_launcher(pod, "vms", view, Policy(shortlist=allowed)) for allowed in (True, False)]
    assert [len(each.shortlist) for each in found if isinstance(each, Pin)] == [64, 0]


def test_of_too_many_nodes_the_best_stay() -> None:
    """As many required and preferred nodes as kube-scheduler scores; those with the most volumes first."""
    names = [f"n{index:03}" for index in range(70)]
    objects = [part for name in names for part in disk(name, name)] + [node(name) for name in names]
    extra = disk("extra", "n069")
    found = decision(virt_launcher_pod(claims=[*names, "extra"]), *objects, *extra)
    assert isinstance(found, Pin)
    assert (len(found.required), len(found.preferred)) == (64, 64)
    assert found.required[:2] == ("n069", "n000")
    assert decision_sentence(found).count(" and 61 more") == 1


ZONE = {"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}


@pytest.mark.parametrize(
    ("objects", "parts", "required", "preferred", "reason"),
    [
        pytest.param(
            [*disk("a", "n1"), *disk("b", "n2"), node("n1", cordoned=True), node("n2")],
            {},
            ("n2",),
            ("n1", "n2"),
            Reason.SHARE_MANAGER_OWNER,
            id="an infeasible node drops out of required",
        ),
        pytest.param(
            [*disk("a", "n1"), *disk("b", "n2"), node("n1", cordoned=True), node("n2", ready="False")],
            {},
            (),
            ("n1", "n2"),
            Reason.NODE_CORDONED,
            id="none is feasible",
        ),
        pytest.param(
            [*disk("a", "n1"), *disk("b", "n2", firm=False), node("n1"), node("n2")],
            {},
            ("n1",),
            ("n1", "n2"),
            Reason.SHARE_MANAGER_OWNER,
            id="a hint is only preferred",
        ),
        pytest.param(
            [*disk("a", "n1", firm=False), *disk("b", "n1", firm=False), node("n1")],
            {},
            (),
            ("n1",),
            Reason.SHARE_MANAGER_UNSCHEDULED,
            id="a hint alone requires nothing",
        ),
        pytest.param(
            [*disk("a", "n1"), node("n1"), persistent_volume_claim("b")],
            {},
            (),
            ("n1",),
            Reason.CLAIM_NOT_BOUND,
            id="an unbound claim forbids a hard pin",
        ),
        pytest.param(
            [*disk("a", "n1"), *disk("b", "n1"), node("n1")],
            {"ephemeral": ["x"]},
            (),
            ("n1",),
            Reason.EPHEMERAL_CLAIM,
            id="so does an ephemeral volume",
        ),
        pytest.param(
            [*disk("a", "n1"), *disk("b", "n1"), node("n1")],
            {"topologySpreadConstraints": SPREAD},
            (),
            ("n1",),
            Reason.TOPOLOGY_SPREAD,
            id="so does a hard spread",
        ),
        pytest.param(
            [*disk("a", "n1"), *disk("b", "n2"), node("n1"), node("n2"), longhorn_node("n1")],
            {},
            ("n1",),
            ("n1",),
            Reason.SHARE_MANAGER_OWNER,
            id="a node without Longhorn is not even preferred",
        ),
        pytest.param(
            [*disk("a", "n1"), *disk("b", "n1"), node("n1")],
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [ZONE] * 65}
                    }
                }
            },
            (),
            ("n1",),
            Reason.TOO_MANY_TERMS,
            id="a pod with too many terms",
        ),
    ],
)
def test_what_keeps_a_node_from_being_required(
    objects: list[Object], parts: Object, required: tuple[str, ...], preferred: tuple[str, ...], reason: Reason
) -> None:
    """Rules 7 and 8, and the reason that the annotation shows."""
    found = pin(*objects, claims="ab", **parts)
    assert found.required == required
    assert tuple(weighted.node for weighted in found.preferred) == preferred
    assert found.why.reason is reason


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([], Reason.CLAIM_NOT_FOUND, id="neither claim is there"),
        pytest.param([persistent_volume_claim("b")], Reason.CLAIM_NOT_BOUND, id="one is there"),
        pytest.param(
            [*disk("a", "n1")[:2], persistent_volume_claim("b")], Reason.SHARE_MANAGER_NOT_FOUND, id="one is bound"
        ),
        pytest.param(
            [*disk("a", "n1"), *disk("b", "n2"), node("n1"), longhorn_node("n3")],
            Reason.LONGHORN_NOT_READY,
            id="no node has Longhorn",
        ),
    ],
)
def test_the_claim_that_leads_furthest_gives_the_reason(objects: list[Object], reason: Reason) -> None:
    """If no claim leads to a node, the pod stays unchanged, and the reason is the most informative one."""
    found = decision(virt_launcher_pod(claims=["a", "b"]), *objects)
    assert isinstance(found, Leave)
    assert (found.why.reason, found.opted_in) == (reason, True)
    assert len(found.findings) == 2


@pytest.mark.parametrize(
    ("gaps", "refs"),
    [
        pytest.param(
            [
                ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "pv-a")),
                ObjectRef(Kind.NODE, NamespacedName("", "n1")),
            ],
            (ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "pv-a")),),
            id="the claims first",
        ),
        pytest.param(
            [ObjectRef(Kind.NODE, NamespacedName("", "n1")), ObjectRef(Kind.NODE, NamespacedName("", "n2"))],
            (ObjectRef(Kind.NODE, NamespacedName("", "n1")), ObjectRef(Kind.NODE, NamespacedName("", "n2"))),
            id="then all nodes at once",
        ),
    ],
)
def test_what_is_not_read_yet_is_needed(gaps: list[Ref], refs: tuple[Ref, ...]) -> None:
    """No decision is made before all objects for it were read."""
    view = Patchy(cluster(*disk("a", "n1"), *disk("b", "n2")), dict.fromkeys(gaps, NoObject.NOT_CACHED))
    pod = convert(virt_launcher_pod(claims=["a", "b"]), Pod)
    assert place_virt_launcher(pod, "vms", view, Policy()) == NeedObjects(refs)


def test_stale_evidence_gives_a_preference_and_its_reason() -> None:
    """Evidence that can have changed is not good enough to require a node."""
    view = Patchy(cluster(*disk("a", "n1"), node("n1")), {}, staleness="ShareManager h-a, last known 42 s ago")
    found = place_virt_launcher(convert(virt_launcher_pod(claims=["a"]), Pod), "vms", view, Policy())
    assert isinstance(found, Pin)
    assert (found.required, found.nodes, found.why.reason) == ((), ("n1",), Reason.UNCONFIRMED)
    assert found.why.sentence.endswith("did not confirm it: ShareManager h-a, last known 42 s ago")


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        pytest.param(
            decision(virt_launcher_pod()), "unchanged: NoClaims: the pod has no PersistentVolumeClaim volume", id="left"
        ),
        pytest.param(
            pin(*disk("a", "n1"), node("n1")),
            "required on n1: ShareManagerOwner: claim a: ShareManager h-a is running, ownerID n1",
            id="required",
        ),
        pytest.param(
            pin(*disk("a", "n1"), node("n1", cordoned=True)),
            "preferred on n1: ShareManagerOwner: claim a: ShareManager h-a is running, ownerID n1; "
            "not required, because NodeCordoned: node n1 is cordoned",
            id="preferred",
        ),
    ],
)
def test_the_sentence_of_a_decision(found: Pin | Leave, sentence: str) -> None:
    """The decision, its evidence, and why the nodes are not required."""
    assert decision_sentence(found) == sentence


def test_the_reason_has_the_strongest_evidence_of_a_node() -> None:
    """A share-manager pod is stronger evidence than an ownerID."""
    objects = [*disk("a", "n1"), *disk("b", "n1"), share_manager_pod("h-b", nodeName="n1"), node("n1")]
    assert pin(*objects, claims="ab").why.reason is Reason.SHARE_MANAGER_POD


def test_the_reason_names_a_disk_before_the_vms_state() -> None:
    """Also if the evidence for the claim of the VM's state is stronger: the pin is for the disk."""
    state = "persistent-state-for-db01"
    objects = [*disk("a", "n1"), *disk(state, "n1"), share_manager_pod(f"h-{state}", nodeName="n1"), node("n1")]
    found = decision(virt_launcher_pod(claims=["a", state]), *objects)
    assert isinstance(found, Pin)
    assert (found.required, found.why.reason) == (("n1",), Reason.SHARE_MANAGER_OWNER)
    assert found.preferred == (WeightedNode("n1", 100),)


def test_own_terms_that_name_a_node_are_counted() -> None:
    """A pin names only nodes that the pod's own affinity allows."""
    own = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_node("n2")]}}}
    found = pin(*disk("a", "n1"), *disk("b", "n2"), node("n1"), node("n2"), claims="ab", affinity=own)
    assert found.required == ("n2",)
