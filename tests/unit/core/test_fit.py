"""A node that takes the pod by itself is asked for what other pods have left of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import builders
import pytest
from msgspec import Struct, convert, field
from views import Patchy, cluster

from webhook.core import fit
from webhook.core.crowd import Attendant, Crowd, Gathering, Room
from webhook.core.feasibility import ClaimVolume, Verdict
from webhook.core.neighbours import Neighbours, Presence
from webhook.core.node_labels import NodeLabels
from webhook.core.objects import Node, PersistentVolume, Pod
from webhook.core.pod_rules import LabelSelector, PodAffinityTerm
from webhook.core.reasons import Reason
from webhook.core.requests import Usage
from webhook.core.view import Gap, Key, Kind, Needs, Ref

HAS = {"pods": 3, "cpu": 1000}
HOSTNAME = "kubernetes.io/hostname"
DB = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOSTNAME}


class There(Struct):
    """A Crowd on n1, a node of one CPU and three pods."""

    gathering: Gathering = field(default_factory=Gathering)
    headroom: Mapping[str, int] = {}
    volume_limits: Mapping[str, int] = {}
    contested: Mapping[str, int] = {}
    nodes: Mapping[str, Node] = field(default_factory=lambda: {"n1": convert(builders.node("n1"), Node)})
    node_labels: NodeLabels = field(default_factory=NodeLabels)

    @property
    def neighbours(self) -> Neighbours:
        """As Crowd says."""
        return self.gathering.neighbours

    def room(self, node: str) -> Room:
        """As Crowd says."""
        load, expected = self.gathering.load(node), self.gathering.expected(node)
        return Room(HAS, load, self.volume_limits, expected, self.contested)


class Crowded(Patchy):
    """A healthy n1 with this crowd."""

    def __init__(self, crowd: Crowd | str | None, gaps: Mapping[Ref, Gap] | None = None) -> None:
        super().__init__(cluster(builders.node("n1")), gaps or {})
        self._crowd = crowd

    def crowd(self) -> Crowd | str | None:
        """As ClusterView says."""
        return self._crowd


def there(*pods: Attendant, **more: Any) -> There:
    """These pods are on n1."""
    made = There(**more)
    for pod in pods:
        made.gathering.add(pod)
    return made


def taking(cpu: int, presence: Presence = Presence.BOUND, **described: Any) -> Attendant:
    """A pod on n1."""
    return Attendant(namespace="vms", node="n1", usage=Usage((("cpu", cpu),)), presence=presence, **described)


def asking(cpu: str = "500m", **spec: Any) -> Pod:
    """The pod under admission."""
    container = {"name": "compute", "resources": {"requests": {"cpu": cpu}}, "ports": spec.pop("ports", [])}
    return convert(builders.virt_launcher_pod(containers=[container], **spec), Pod)


def verdict(crowd: Crowd | str | None, pod: Pod | None = None, volumes: Sequence[ClaimVolume] = ()) -> Verdict:
    """What is said of n1."""
    found = fit.judge("n1", fit.applicant(pod or asking(), "vms", volumes), Crowded(crowd))
    assert isinstance(found, Verdict)
    return found


VOLUME = ClaimVolume("disk", convert(builders.persistent_volume("pv", claim="disk"), PersistentVolume))
OF_NFS = ClaimVolume("disk", convert(builders.persistent_volume("pv", claim="disk", driver=None), PersistentVolume))
FULL = taking(501)
EXPECTED = taking(501, Presence.EXPECTED)
PORTS = [{"containerPort": 80, "hostPort": 80}]
TAKEN = Attendant(namespace="vms", node="n1", usage=fit.applicant(asking("1m", ports=PORTS), "vms").usage)
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [DB]}}
DATABASE = taking(1, labels={"app": "db"})
REPELS = taking(
    1,
    repels=[
        PodAffinityTerm(
            label_selector=LabelSelector(match_labels={"kubevirt.io": "virt-launcher"}), topology_key=HOSTNAME
        )
    ],
)
SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"kubevirt.io": "virt-launcher"}},
    }
]

PINNED = builders.node_affinity(required=[builders.on_node("n1")])

VERDICTS: dict[str, tuple[There, Pod, tuple[Reason, bool]]] = {
    "empty": (there(), asking(), (Reason.NODE_FEASIBLE, True)),
    "just room": (there(taking(500)), asking(), (Reason.NODE_FEASIBLE, True)),
    "full": (there(FULL), asking(), (Reason.NO_ROOM, True)),
    "full of terminating ones": (there(taking(501, Presence.TERMINATING)), asking(), (Reason.NO_ROOM, True)),
    "promised": (there(EXPECTED), asking(), (Reason.NO_ROOM, False)),
    "partly promised": (there(taking(400), taking(101, Presence.EXPECTED)), asking(), (Reason.NO_ROOM, False)),
    "some are expected, and there is room": (
        there(taking(500, Presence.EXPECTED)),
        asking(),
        (Reason.NODE_FEASIBLE, True),
    ),
    "as many pods as it may have": (there(*[taking(0)] * 3), asking(), (Reason.NO_ROOM, True)),
    "within the headroom": (there(headroom={"cpu": 501}), asking(), (Reason.NO_ROOM, True)),
    "headroom is left": (there(headroom={"cpu": 500}), asking(), (Reason.NODE_FEASIBLE, True)),
    "contested": (there(contested={"cpu": 501, "pods": 1}), asking(), (Reason.NO_ROOM, True)),
    "contested, and promised": (
        there(taking(100, Presence.EXPECTED), contested={"cpu": 501, "pods": 1}),
        asking(),
        (Reason.NO_ROOM, False),
    ),
    "contested, and room for both": (there(contested={"cpu": 500, "pods": 1}), asking(), (Reason.NODE_FEASIBLE, True)),
    "contested beside the headroom": (
        there(headroom={"cpu": 300}, contested={"cpu": 300}),
        asking(),
        (Reason.NO_ROOM, True),
    ),
    "a port": (there(TAKEN), asking("1m", ports=PORTS), (Reason.PORT_TAKEN, True)),
    "whom it avoids": (there(DATABASE), asking(affinity=APART), (Reason.POD_ANTI_AFFINITY, True)),
    "who avoids it": (there(REPELS), asking(), (Reason.REPELLED, True)),
    "spread over what the node is not in": (
        there(),
        asking(topologySpreadConstraints=SPREAD),
        (Reason.TOPOLOGY_LABEL_MISSING, True),
    ),
    "full, and it may run on no other": (there(EXPECTED), asking(affinity=PINNED), (Reason.NODE_FEASIBLE, True)),
    "full, and it may run on another": (
        there(EXPECTED),
        asking(affinity=builders.node_affinity(required=[builders.on_node("n1"), builders.on_node("n2")])),
        (Reason.NO_ROOM, False),
    ),
    "a node that was not listed": (there(nodes={}), asking(), (Reason.PODS_UNKNOWN, True)),
}


@pytest.mark.parametrize(("crowd", "pod", "expected"), VERDICTS.values(), ids=VERDICTS)
def test_what_the_others_have_left(crowd: There, pod: Pod, expected: tuple[Reason, bool]) -> None:
    """Each rule refuses for its reason; a place that was promised is not even preferred by anybody else."""
    found = verdict(crowd, pod)
    assert (found.why.reason, found.preferable) == expected


@pytest.mark.parametrize(
    ("bound", "limits", "reason"),
    [
        pytest.param(VOLUME, {}, Reason.NODE_FEASIBLE, id="no limits"),
        pytest.param(VOLUME, {"other.example.com": 1}, Reason.NODE_FEASIBLE, id="of another driver"),
        pytest.param(VOLUME, {builders.LONGHORN_DRIVER: 16}, Reason.VOLUMES_LIMITED, id="of its driver"),
        pytest.param(OF_NFS, {"": 1}, Reason.NODE_FEASIBLE, id="of none"),
    ],
)
def test_a_limit_of_volumes_is_not_decided(bound: ClaimVolume, limits: dict[str, int], reason: Reason) -> None:
    """How many are attached is not known: with a limit there is no hard pin, and a preference may stay."""
    found = verdict(there(volume_limits=limits), volumes=[bound])
    assert (found.why.reason, found.preferable) == (reason, True)


def test_pods_that_are_not_known() -> None:
    """The problem is told, and the node is preferred."""
    found = verdict("pods: not listed yet")
    assert (found.why.reason, found.preferable) == (Reason.PODS_UNKNOWN, True)
    assert "not listed yet" in found.why.sentence


def test_without_a_crowd_nobody_is_asked() -> None:
    """The guard is off: what the node says by itself is all."""
    assert verdict(None, asking("64")).feasible


def test_the_node_s_own_rules_come_first() -> None:
    """They need nobody else, and are told as they are without the guard."""
    found = verdict(there(FULL), asking(nodeSelector={"disk": "nvme"}))
    assert found.why.reason is Reason.NODE_SELECTOR_MISMATCH


def test_what_was_not_read_is_asked_for() -> None:
    """Before any pod is counted."""
    ref = Ref(Kind.NODE, Key("", "n1"))
    found = fit.judge("n1", fit.applicant(asking(), "vms"), Crowded(there(), {ref: Gap.UNREAD}))
    assert found == Needs((ref,))


@pytest.mark.parametrize(
    ("crowd", "pod", "reason"),
    [
        pytest.param(there(), asking(affinity=APART), None, id="between pods, and they are known"),
        pytest.param(None, asking(affinity=APART), Reason.INTER_POD_AFFINITY, id="between pods, guard off"),
        pytest.param(None, asking(), None, id="nothing, guard off"),
        pytest.param(
            there(), asking(resourceClaims=[{"name": "gpu"}]), Reason.RESOURCE_CLAIMS, id="devices, whoever is known"
        ),
    ],
)
def test_what_no_node_can_be_judged_by(crowd: Crowd | None, pod: Pod, reason: Reason | None) -> None:
    """Rules between pods are undecidable only where the pods are not known."""
    why = fit.undecidable(pod, Crowded(crowd))
    assert (why and why.reason) == reason
