from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import jsonpatch
import pytest
from msgspec import convert
from support.fakes.views import Patchy, cluster
from support.objects.builders import (
    instance_manager_pod,
    longhorn_node,
    node,
    on_node,
    persistent_volume,
    persistent_volume_claim,
    review,
    share_manager,
    share_manager_pod,
    virt_launcher_pod,
    vm_pod,
    volume_attachment,
)

from webhook.core.admit import Answer, Entry, admit
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.decision import Leave, Steer, decision_sentence
from webhook.core.opt_in import Mode, Policy
from webhook.core.placement.share_manager import steer_share_manager, volume_of
from webhook.core.reasons import Reason
from webhook.core.scheduler.state.snapshot import SnapshotUnavailable
from webhook.core.view import ClusterView, Kind, NeedObjects, NoObject, ObjectRef, Ref, VirtLaunchersOnNode

Object = dict[str, Any]
LONGHORN = "longhorn-system"
VOLUME = [persistent_volume("h", claim="disk")]
SOFT = ["old=:PreferNoSchedule"]
MANY = [node(f"m{i}") for i in range(1, 111)]
ZONE = {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "Exists"}]}


def vm(name: str, on: str | None, **parts: Any) -> Object:
    """Return the pod of a VM that uses the volume's claim."""
    return vm_pod(name, node=on, **{"claims": ["disk"], **parts})


def decide(
    *objects: Object,
    pod: Object | None = None,
    gaps: Mapping[Ref, NoObject] | None = None,
    staleness: str | None = None,
    policy: Policy = Policy(),  # noqa: B008 - frozen
    seen: bool = True,
) -> Steer | Leave | NeedObjects:
    """Decide for the volume's share-manager pod in a cluster of these objects.

    `seen`: an instance-manager pod of Longhorn runs on each node.
    """
    nodes = [each["metadata"]["name"] for each in objects if (each["apiVersion"], each["kind"]) == ("v1", "Node")]
    managers = map(instance_manager_pod, nodes if seen else ())
    view: ClusterView = Patchy(cluster(*VOLUME, *managers, *objects), gaps or {}, staleness=staleness)
    found = steer_share_manager(convert(pod or share_manager_pod("h", phase=None), Pod), LONGHORN, view, policy)
    assert isinstance(found, Steer | Leave | NeedObjects)
    return found


def steered(*objects: Object, **parts: Any) -> Steer:
    """Return the decision of `decide`, which must be Steer."""
    found = decide(*objects, **parts)
    assert isinstance(found, Steer)
    return found


def refs(*names: str) -> set[Ref]:
    """Return the references to these nodes."""
    return {ObjectRef(kind, NamespacedName("", name)) for name in names for kind in (Kind.NODE, Kind.LONGHORN_NODE)}


def test_a_node_on_which_no_instance_manager_pod_is_seen_is_preferred_by_its_name_too() -> None:
    """The pod affinity has no effect there. One node of several without such a pod is enough."""
    assert not steered(vm("a", "n1"), node("n1")).by_node
    assert steered(vm("a", "n1"), node("n1"), seen=False).by_node
    both = [vm("a", "n1"), vm("b", "n2"), node("n1"), node("n2")]
    assert steered(*both, instance_manager_pod("n1"), seen=False).by_node
    elsewhere = instance_manager_pod("n1", namespace="elsewhere")
    assert steered(vm("a", "n1"), node("n1"), elsewhere, seen=False).by_node


def test_where_pods_are_not_known_the_node_is_preferred_by_its_name_too() -> None:
    """No node has status.allocatable here, so that no pods are counted."""
    assert steered(vm("a", "n1"), node("n1", allocatable=None)).by_node


DRAINED = [node("n1", cordoned=True), node("n2"), vm("a", "n1", claims=["disk", "data"])]
DATA = [
    persistent_volume_claim("data", volume_name="d"),
    persistent_volume("d", claim="data"),
    share_manager("d", state="running", ownerID="n2"),
    share_manager_pod("d", nodeName="n2"),
]
CLAIMS = [persistent_volume_claim("disk", volume_name="h"), *DATA]


@pytest.mark.parametrize(
    "ref",
    [
        pytest.param(ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "data")), id="its claim"),
        pytest.param(ObjectRef(Kind.NODE, NamespacedName("", "n2")), id="its node"),
        pytest.param(ObjectRef(Kind.SHARE_MANAGER_POD, NamespacedName("", "share-manager-d")), id="its pod"),
    ],
)
def test_what_leads_to_the_other_share_manager_is_read(ref: ObjectRef) -> None:
    """But only if the VM's own node can't take the pod."""
    found = decide(*DRAINED, *CLAIMS, gaps={ref: NoObject.NOT_CACHED})
    assert isinstance(found, NeedObjects)
    assert ref in found.refs
    ready = [node("n1"), *DRAINED[1:]]
    assert steered(*ready, *CLAIMS, gaps={ref: NoObject.NOT_CACHED}).nodes == ("n1",)


def test_another_share_manager_that_can_not_be_read_is_not_followed() -> None:
    """The pod stays as it is."""
    gaps = {ObjectRef(Kind.SHARE_MANAGER_POD, NamespacedName("", "share-manager-d")): NoObject.UNAVAILABLE}
    found = decide(*DRAINED, *CLAIMS, gaps=gaps)
    assert isinstance(found, Leave)
    assert found.why.reason is Reason.NODE_CORDONED


def test_the_other_share_managers_of_each_vm_count() -> None:
    """Not those of a VM on no node, nor those of a VM that did not opt in."""
    others = [
        vm("b", None, claims=["disk", "data"]),
        vm("c", "n1", claims=["disk", "data"], opt_in=None),
    ]
    found = steered(*DRAINED, *others, *CLAIMS)
    assert (found.why.reason, found.nodes) == (Reason.SHARE_MANAGER_BESIDE, ("n2",))
    assert [each.claim for each in found.findings if each.why.reason is Reason.SHARE_MANAGER_BESIDE] == ["vms/data"]


def test_longhorn_can_be_in_another_namespace() -> None:
    """A share-manager pod is in the namespace that the operator names, and in no other."""
    policy, pod = Policy(longhorn_namespace="storage"), convert(share_manager_pod("h", phase=None), Pod)
    inside = steer_share_manager(pod, "storage", cluster(*VOLUME, vm("a", "n1"), node("n1")), policy)
    elsewhere = steer_share_manager(pod, LONGHORN, cluster(*VOLUME, vm("a", "n1"), node("n1")), policy)
    assert isinstance(inside, Steer)
    assert isinstance(elsewhere, Leave)
    assert elsewhere.why.reason is Reason.NOT_SHARE_MANAGER


@pytest.mark.parametrize(
    ("label", "name", "volume"),
    [
        pytest.param("h", "share-manager-h", "h", id="as Longhorn names it"),
        pytest.param("h", "anything", "h", id="the label outweighs the name"),
        pytest.param(None, "share-manager-h", "h", id="by its name"),
        pytest.param("", "share-manager-h", "h", id="an empty label is none"),
        pytest.param(None, "share-manager-share-manager-h", "share-manager-h", id="a volume that is called so too"),
        pytest.param(None, "x-share-manager-h", "", id="a name that begins otherwise"),
        pytest.param(None, "h", "", id="another name"),
        pytest.param(None, None, "", id="no name yet"),
    ],
)
def test_the_volume_of_a_share_manager_pod(label: str | None, name: str | None, volume: str) -> None:
    """Label and name both contain it. Without the component label the pod is not a share-manager pod."""
    labels = {"longhorn.io/component": "share-manager", "longhorn.io/share-manager": label}
    pod: Object = {
        "metadata": {"name": name, "labels": {key: value for key, value in labels.items() if value is not None}}
    }
    assert volume_of(convert({**pod, "spec": {}}, Pod)) == volume
    del pod["metadata"]["labels"]["longhorn.io/component"]
    assert volume_of(convert({**pod, "spec": {}}, Pod)) == ""


def test_no_node_is_required_for_a_share_manager_pod() -> None:
    """One VM on one node, and every object is known: the node is preferred, and none is required."""
    found = steered(vm("a", "n1"), node("n1"), longhorn_node("n1"))
    assert found.strength is Mode.PREFERRED
    assert (found.required, found.shortlist, found.near) == ((), (), found.preferred)


def test_every_node_is_asked_for_at_once() -> None:
    """One NeedObjects has the nodes and Longhorn's nodes of all VMs."""
    unread = dict.fromkeys(refs("n1", "n2"), NoObject.NOT_CACHED)
    nodes = [node("n1"), node("n2"), longhorn_node("n1"), longhorn_node("n2")]
    needs = decide(vm("a", "n1"), vm("b", "n2"), *nodes, gaps=unread)
    assert isinstance(needs, NeedObjects)
    assert set(needs.refs) == refs("n1", "n2")
    assert len(needs.refs) == 4


@pytest.mark.parametrize(
    ("objects", "caches_know", "rounds"),
    [
        pytest.param([vm("a", "n1")], True, 0, id="the VM's node is known"),
        pytest.param([vm("a", None), volume_attachment("h", [("csi-attacher", "n1")])], True, 1, id="by its ticket"),
        pytest.param([volume_attachment("h", [("csi-attacher", "n1")])], True, 2, id="the ticket is all there is"),
        pytest.param([vm("a", None)], True, 1, id="nothing is"),
        pytest.param([vm("a", "n1")], False, 2, id="no cache knows anything, the VM's node is known"),
        pytest.param(
            [volume_attachment("h", [("csi-attacher", "n1")])], False, 3, id="no cache knows anything, and a ticket"
        ),
        pytest.param(
            [vm("a", None), volume_attachment("h", [("csi-attacher", "n1")])], False, 3, id="no cache, by its ticket"
        ),
    ],
)
def test_how_often_something_must_be_read(objects: list[Object], caches_know: bool, rounds: int) -> None:  # noqa: FBT001 - a column
    """With following caches at most two rounds of reads, and none in the steady state. Nothing is read twice."""
    live = [
        ObjectRef(Kind.VOLUME_ATTACHMENT, NamespacedName("", "h")),
        VirtLaunchersOnNode("vms", "n1"),
    ]
    cached = [ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "h")), *refs("n1")]
    gaps = dict.fromkeys(live if caches_know else [*live, *cached], NoObject.NOT_CACHED)
    asked = 0
    while isinstance(found := decide(*objects, node("n1"), longhorn_node("n1"), gaps=gaps), NeedObjects):
        asked += 1
        for ref in found.refs:
            del gaps[ref]
    assert asked == rounds


def test_a_node_that_could_not_be_read_is_only_preferred() -> None:
    """A preference for a missing node does no harm. A short list around an unfit node would."""
    gaps = {ObjectRef(Kind.NODE, NamespacedName("", "m1")): NoObject.UNAVAILABLE}
    found = steered(vm("a", "m1"), *MANY, gaps=gaps)
    assert found.nodes == ("m1",)
    assert found.shortlist == ()
    assert found.node_fits[0].why.reason is Reason.NODE_LOOKUP_FAILED


def test_a_node_whose_pods_are_not_known_is_only_preferred() -> None:
    """A preference for a full node does no harm."""

    class UnknownPods(Patchy):
        """A view that does not know the pods on the nodes."""

        def snapshot(self) -> SnapshotUnavailable:
            """Return why the pods are not known."""
            return SnapshotUnavailable("pods were not listed yet")

    view = UnknownPods(cluster(*VOLUME, vm("a", "m1"), *MANY), {})
    found = steer_share_manager(convert(share_manager_pod("h", phase=None), Pod), LONGHORN, view, Policy())
    assert isinstance(found, Steer)
    assert (found.nodes, found.shortlist, found.near) == (("m1",), (), found.preferred)
    assert found.node_fits[0].why.reason is Reason.PODS_UNKNOWN


def test_a_full_node_is_not_preferred() -> None:
    """A share-manager pod requests no CPU or memory, but a node takes only a limited number of pods."""
    full = node("n1")
    full["status"]["allocatable"]["pods"] = "1"
    found = decide(vm("a", "n1"), full, node("n2"))
    assert isinstance(found, Leave)
    assert found.why.reason is Reason.NO_ROOM


def test_a_node_whose_longhorn_node_could_not_be_read_is_preferred() -> None:
    """An object of Longhorn that can't be read does not speak against the node."""
    gaps = {ObjectRef(Kind.LONGHORN_NODE, NamespacedName("", "n1")): NoObject.UNAVAILABLE}
    assert steered(vm("a", "n1"), node("n1"), longhorn_node("n1"), gaps=gaps).nodes == ("n1",)


def test_stale_evidence_gives_a_preference_and_no_short_list() -> None:
    """Evidence that can have changed is good enough only for a preference."""
    assert steered(vm("a", "m1"), *MANY, staleness="Node m1 was as told 40 s ago").shortlist == ()
    assert len(steered(vm("a", "m1"), *MANY).shortlist) == 64


def test_without_short_lists_a_soft_taint_gives_node_affinity_terms() -> None:
    """The operator's choice: the preference alone, and beside a taint by node affinity, too."""
    off = Policy(shortlist=False)
    alone = steered(vm("a", "m1"), *MANY, policy=off)
    assert (alone.shortlist, alone.near, alone.by_node) == ((), alone.preferred, False)
    tainted = [node("m1", taints=SOFT) if each["metadata"]["name"] == "m1" else each for each in MANY]
    found = steered(vm("a", "m1"), *tainted, policy=off)
    assert (found.shortlist, found.near, found.by_node) == ((), found.preferred, True)
    alike = [node(each["metadata"]["name"], taints=SOFT) for each in MANY]
    assert not steered(vm("a", "m1"), *alike, policy=off).by_node


def test_preferences_are_bounded() -> None:
    """80 VMs on 80 nodes share a volume: the 8 best nodes are preferred, and the short list begins with these."""
    found = steered(*(vm(f"v{i}", f"m{i}") for i in range(1, 81)), vm("w", "m80"), *MANY)
    assert len(found.preferred) == 8
    assert [(weighted.node, weighted.weight) for weighted in found.preferred][:2] == [("m80", 100), ("m1", 50)]
    assert found.near == found.preferred
    assert found.shortlist[:8] == found.nodes
    assert len(found.shortlist) == 64
    assert decision_sentence(found).startswith("preferred on m80, m1, m10 and 5 more: ConsumerOnNode: ")


@pytest.mark.parametrize(("chars", "terms"), [(63, 1), (64, 0)])
def test_a_node_name_too_long_for_a_label_gets_no_pod_affinity_term(chars: int, terms: int) -> None:
    """kube-apiserver would reject the pod. The node is preferred by node affinity."""
    name = "n" * chars
    found = steered(vm("a", name), node(name))
    assert (found.nodes, len(found.near), found.by_node) == ((name,), terms, not terms)


@pytest.mark.parametrize(
    "terms",
    [
        pytest.param([ZONE], id="one term"),
        pytest.param([ZONE, {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}], id="two terms"),
        pytest.param([on_node("m1"), ZONE], id="a term that names a node, and one that names none"),
        pytest.param([on_node("m109"), on_node("m110"), ZONE], id="terms that name other nodes, and one that does not"),
        pytest.param([on_node(f"m{i}") for i in range(1, 41)], id="terms that name nodes"),
        pytest.param([on_node(f"m{i}") for i in range(1, 101)], id="more terms that name nodes than a list has"),
        pytest.param([{}, ZONE], id="an empty term"),
    ],
)
def test_a_second_admission_among_many_nodes_changes_nothing(terms: list[Object]) -> None:
    """The short list in the pod is the one that would be written, and the annotation counts it the same."""
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    pod = share_manager_pod("h", phase=None, affinity=affinity)
    view = cluster(*VOLUME, vm("a", "m1"), *MANY)
    first = _patch(pod, view)
    again = jsonpatch.apply_patch(json.loads(json.dumps(pod)), first)
    assert first
    assert _patch(again, view) == []


def test_terms_that_name_nodes_stay_as_they_are() -> None:
    """They are a short list already, and the scheduler evaluates no other node.

    This holds also if one of them is unfit by now.
    """
    terms = [on_node(f"m{i}") for i in range(1, 41)]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    pod = share_manager_pod("h", phase=None, affinity=affinity)
    nodes = [*MANY[:39], node("m40", cordoned=True), *MANY[40:]]
    patch = _patch(pod, cluster(*VOLUME, vm("a", "m1"), *nodes, instance_manager_pod("m1")))
    assert [each["path"].rpartition("/")[2] for each in patch] == [
        "podAffinity",
        "kubevirt-scheduler~1decision",
        "kubevirt-scheduler~1written",
        "descheduler.alpha.kubernetes.io~1prefer-no-eviction",
    ]


def _patch(pod: Object, view: ClusterView) -> list[Object]:
    answer = admit(json.dumps(review(pod, namespace=LONGHORN)).encode(), view, Policy(), Entry.SHARE_MANAGER)
    assert isinstance(answer, Answer)
    patch: list[Object] = json.loads(base64.b64decode(json.loads(answer.body)["response"].get("patch", "W10=")))
    return patch


def test_each_entry_has_its_own_rules() -> None:
    """A share-manager pod that is sent to the virt-launcher entry stays unchanged, and the reverse."""
    objects = [*VOLUME, vm("a", "n1"), node("n1")]
    for pod, namespace, entry, reason in (
        (share_manager_pod("h", phase=None), LONGHORN, Entry.VIRT_LAUNCHER, Reason.NOT_VIRT_LAUNCHER),
        (virt_launcher_pod(claims=["disk"]), "vms", Entry.SHARE_MANAGER, Reason.NOT_SHARE_MANAGER),
    ):
        answer = admit(json.dumps(review(pod, namespace=namespace)).encode(), cluster(*objects), Policy(), entry)
        assert isinstance(answer, Answer)
        assert answer.decision.why.reason is reason
