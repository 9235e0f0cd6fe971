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
    longhorn_node,
    node,
    on_node,
    persistent_volume,
    review,
    share_manager_pod,
    virt_launcher_pod,
    vm_pod,
    volume_attachment,
)

from webhook.core.admit import Answer, Entry, admit
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.decision import Leave, Steer
from webhook.core.opt_in import Mode, Policy
from webhook.core.placement.share_manager import volume_of
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
    """A VM on the volume's claim."""
    return vm_pod(name, node=on, **{"claims": ["disk"], **parts})


def ask(
    *objects: Object,
    pod: Object | None = None,
    gaps: Mapping[Ref, NoObject] | None = None,
    staleness: str | None = None,
) -> Steer | Leave | NeedObjects:
    """What is decided for the volume's share-manager pod in a cluster of these objects."""
    view: ClusterView = Patchy(cluster(*VOLUME, *objects), gaps or {}, staleness=staleness)
    found = decide(convert(pod or share_manager_pod("h", phase=None), Pod), LONGHORN, view, Policy())
    assert isinstance(found, Steer | Leave | NeedObjects)
    return found


def steered(*objects: Object, **parts: Any) -> Steer:
    """As `ask`, where the pod is drawn somewhere."""
    found = ask(*objects, **parts)
    assert isinstance(found, Steer)
    return found


def refs(*names: str) -> set[Ref]:
    """What is asked of these nodes."""
    return {ObjectRef(kind, NamespacedName("", name)) for name in names for kind in (Kind.NODE, Kind.LONGHORN_NODE)}


def test_longhorn_may_live_elsewhere() -> None:
    """A share-manager pod is one of the namespace that the operator has named, and of no other."""
    policy, pod = Policy(longhorn_namespace="storage"), convert(share_manager_pod("h", phase=None), Pod)
    there = decide(pod, "storage", cluster(*VOLUME, vm("a", "n1"), node("n1")), policy)
    elsewhere = decide(pod, LONGHORN, cluster(*VOLUME, vm("a", "n1"), node("n1")), policy)
    assert isinstance(there, Steer)
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
    """Both tell it; without the label of the component a pod is the share-manager of none."""
    labels = {"longhorn.io/component": "share-manager", "longhorn.io/share-manager": label}
    pod: Object = {
        "metadata": {"name": name, "labels": {key: told for key, told in labels.items() if told is not None}}
    }
    assert volume_of(convert({**pod, "spec": {}}, Pod)) == volume
    del pod["metadata"]["labels"]["longhorn.io/component"]
    assert volume_of(convert({**pod, "spec": {}}, Pod)) == ""


def test_a_wish_is_never_a_pin() -> None:
    """One VM on one node, of which everything is known: it is preferred, and required is nothing."""
    found = steered(vm("a", "n1"), node("n1"), longhorn_node("n1"))
    assert found.strength is Mode.PREFERRED
    assert (found.required, found.shortlist, found.toward) == ((), (), ())


def test_every_node_is_asked_for_at_once() -> None:
    """Nodes and Longhorn's nodes of every VM are one Needs."""
    unread = dict.fromkeys(refs("n1", "n2"), NoObject.NOT_CACHED)
    nodes = [node("n1"), node("n2"), longhorn_node("n1"), longhorn_node("n2")]
    needs = ask(vm("a", "n1"), vm("b", "n2"), *nodes, gaps=unread)
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
            [volume_attachment("h", [("csi-attacher", "n1")])], False, 3, id="no cache knows anything but for a ticket"
        ),
        pytest.param(
            [vm("a", None), volume_attachment("h", [("csi-attacher", "n1")])], False, 3, id="no cache, by its ticket"
        ),
    ],
)
def test_how_often_something_must_be_read(objects: list[Object], caches_know: bool, rounds: int) -> None:  # noqa: FBT001 - a column
    """With caches that follow, two rounds of reads at most, and none in the steady state; nothing is asked twice."""
    live = [
        ObjectRef(Kind.VOLUME_ATTACHMENT, NamespacedName("", "h")),
        VirtLaunchersOnNode("vms", "n1"),
    ]
    cached = [ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "h")), *refs("n1")]
    gaps = dict.fromkeys(live if caches_know else [*live, *cached], NoObject.NOT_CACHED)
    asked = 0
    while isinstance(found := ask(*objects, node("n1"), longhorn_node("n1"), gaps=gaps), NeedObjects):
        asked += 1
        for ref in found.refs:
            del gaps[ref]
    assert asked == rounds


def test_a_node_that_could_not_be_read_is_preferred_and_no_more() -> None:
    """A wish for a node that is gone changes nothing; a list around one that is unfit would be wrong."""
    gaps = {ObjectRef(Kind.NODE, NamespacedName("", "m1")): NoObject.UNAVAILABLE}
    found = steered(vm("a", "m1"), *MANY, gaps=gaps)
    assert found.nodes == ("m1",)
    assert found.shortlist == ()
    assert found.node_fits[0].why.reason is Reason.NODE_LOOKUP_FAILED


def test_a_node_of_which_the_pods_are_not_known_is_preferred_and_no_more() -> None:
    """Where there is no room the wish is not granted, and nothing is lost."""

    class Uncounted(Patchy):
        """A view that can't tell what is on the nodes."""

        def snapshot(self) -> SnapshotUnavailable:
            """Return why there is no snapshot."""
            return SnapshotUnavailable("pods were not listed yet")

    view = Uncounted(cluster(*VOLUME, vm("a", "m1"), *MANY), {})
    found = decide(convert(share_manager_pod("h", phase=None), Pod), LONGHORN, view, Policy())
    assert isinstance(found, Steer)
    assert (found.nodes, found.shortlist, found.toward) == (("m1",), (), ())
    assert found.node_fits[0].why.reason is Reason.PODS_UNKNOWN


def test_a_node_without_room_is_not_preferred() -> None:
    """A share-manager pod asks for no CPU or memory, but a node takes only so many pods."""
    full = node("n1")
    full["status"]["allocatable"]["pods"] = "1"
    found = ask(vm("a", "n1"), full, node("n2"))
    assert isinstance(found, Leave)
    assert found.why.reason is Reason.NO_ROOM


def test_a_longhorn_node_that_could_not_be_read_is_no_reason_against_its_node() -> None:
    """Where Longhorn's own object is out of reach, its node is preferred all the same."""
    gaps = {ObjectRef(Kind.LONGHORN_NODE, NamespacedName("", "n1")): NoObject.UNAVAILABLE}
    assert steered(vm("a", "n1"), node("n1"), longhorn_node("n1"), gaps=gaps).nodes == ("n1",)


def test_in_doubt_there_is_a_wish_and_no_list() -> None:
    """What may have changed since is good for a preference only."""
    assert steered(vm("a", "m1"), *MANY, staleness="Node m1 was as told 40 s ago").shortlist == ()
    assert len(steered(vm("a", "m1"), *MANY).shortlist) == 64


def test_wishes_are_bounded() -> None:
    """A volume that 80 VMs on 80 nodes share: the 64 best are preferred, and all are in the list that is required."""
    found = steered(*(vm(f"v{i}", f"m{i}") for i in range(1, 81)), vm("w", "m80"), *MANY)
    assert len(found.preferred) == 64
    assert [(wish.node, wish.weight) for wish in found.preferred][:2] == [("m80", 100), ("m1", 50)]
    assert set(found.shortlist) == {wish.node for wish in found.preferred}
    assert tell(found).startswith("preferred on m80, m1, m10 and 61 more: ConsumerOnNode: ")


def test_pods_that_are_drawn_to_are_bounded() -> None:
    """At a node with a soft taint the pods of eight VMs are named, each once, by namespace and uid."""
    vms = [vm(f"v{i}", "n1") for i in range(10)]
    found = steered(*vms, node("n1", taints=SOFT))
    uids = {each["metadata"]["ownerReferences"][0]["uid"] for each in vms}
    assert len(found.toward) == len(set(found.toward)) == 8
    assert {(key.namespace, key.name in uids) for key in found.toward} == {("vms", True)}


def test_a_vm_at_an_unfit_node_is_not_drawn_to_as_a_pod() -> None:
    """Only the VMs count that the share-manager pod could be with."""
    there, elsewhere = vm("a", "n1"), vm("b", "n2")
    found = steered(there, elsewhere, vm("c", None), node("n1", taints=SOFT), node("n2", cordoned=True))
    assert [key.name for key in found.toward] == [there["metadata"]["ownerReferences"][0]["uid"]]


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
    """The list that is there is the list that would be written, and the annotation counts it alike."""
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    pod = share_manager_pod("h", phase=None, affinity=affinity)
    view = cluster(*VOLUME, vm("a", "m1"), *MANY)
    first = _patch(pod, view)
    again = jsonpatch.apply_patch(json.loads(json.dumps(pod)), first)
    assert first
    assert _patch(again, view) == []


def test_terms_that_name_nodes_stay_as_they_are() -> None:
    """They are a list already, and the scheduler looks at no other node: also where one of them is unfit by now."""
    terms = [on_node(f"m{i}") for i in range(1, 41)]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    pod = share_manager_pod("h", phase=None, affinity=affinity)
    patch = _patch(pod, cluster(*VOLUME, vm("a", "m1"), *MANY[:39], node("m40", cordoned=True), *MANY[40:]))
    assert [each["path"].rpartition("/")[2] for each in patch] == [
        "preferredDuringSchedulingIgnoredDuringExecution",
        "kubevirt-scheduler~1decision",
        "kubevirt-scheduler~1written",
    ]


def _patch(pod: Object, view: ClusterView) -> list[Object]:
    answer = admit(json.dumps(review(pod, namespace=LONGHORN)).encode(), view, Policy(), Entry.SHARE_MANAGER)
    assert isinstance(answer, Answer)
    patch: list[Object] = json.loads(base64.b64decode(json.loads(answer.body)["response"].get("patch", "W10=")))
    return patch


def test_each_entry_has_its_own_rules() -> None:
    """A share-manager pod that comes by the way of VMs is not ours there, and the other way round."""
    objects = [*VOLUME, vm("a", "n1"), node("n1")]
    for pod, namespace, entry, reason in (
        (share_manager_pod("h", phase=None), LONGHORN, Entry.VIRT_LAUNCHER, Reason.NOT_VIRT_LAUNCHER),
        (virt_launcher_pod(claims=["disk"]), "vms", Entry.SHARE_MANAGER, Reason.NOT_SHARE_MANAGER),
    ):
        answer = admit(json.dumps(review(pod, namespace=namespace)).encode(), cluster(*objects), Policy(), entry)
        assert isinstance(answer, Answer)
        assert answer.decision.why.reason is reason
