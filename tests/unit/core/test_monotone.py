"""A rule more in the pod, or a pod more in the cluster, never gives a stronger answer."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any, Final

import pytest
from support.fakes.views import cluster
from support.models.outcomes import REQUIRED, terms_of
from support.objects import builders, builders_pods, corpus
from support.objects.builders_kubevirt import virtual_machine_instance
from support.objects.corpus import VIRT_LAUNCHER, Case
from support.objects.embedded import policy

from webhook.core.admit import Entry, admit
from webhook.core.decision import Pin
from webhook.core.view import ClusterView

pytestmark = pytest.mark.slow
Object = dict[str, Any]
CASES: Final = [case for case in corpus.load() if case.creates_pod and case.review["request"].get("namespace")]
UNCHANGED, PREFERRED, LISTED, PINNED = range(4)


def strength(case: Case, view: ClusterView, pod: Object) -> int:
    """Return how strong the answer is if the review of a row has this pod."""
    body = json.dumps({**case.review, "request": {**case.review["request"], "object": pod}}).encode()
    answer: Any = admit(body, view, policy(case), next(entry for entry in Entry if entry.title == case.entry))
    if not isinstance(answer.decision, Pin):
        return UNCHANGED
    return PINNED if answer.decision.required else LISTED if answer.decision.shortlist else PREFERRED


VOLUMES: Final[dict[str, Object]] = {
    "of-a-zone": {"driver": None, "labels": {"topology.kubernetes.io/zone": "a"}},
    "of-another-driver": {"driver": "rbd.csi.ceph.com"},
    "in-tree": {"driver": None, "source": {"awsElasticBlockStore": {"volumeID": "vol-1"}}},
}
TERM: Final = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
NOT_NOWHERE: Final = {"key": "metadata.name", "operator": "NotIn", "values": ["nowhere"]}


def objects_of(case: Case) -> Iterator[Object]:
    """Yield the objects of a row, a claim for each of VOLUMES, and two VMs."""
    yield from case.objects
    namespace = case.review["request"]["namespace"]
    for name, volume in VOLUMES.items():
        yield builders.persistent_volume_claim(name, volume_name=f"pv-{name}", namespace=namespace)
        yield builders.persistent_volume(f"pv-{name}", claim=name, namespace=namespace, **volume)
    for name in ("added", "added-too"):
        yield virtual_machine_instance(name, [f"{name}-{number}" for number in range(9)], vm=None)


@cache
def before(case: Case) -> tuple[ClusterView, int]:
    """Return the cluster of these objects, and the strength of the row's answer there."""
    view = cluster(*objects_of(case), vms=False)
    return view, strength(case, view, case.pod)


def add(value: Any, *path: str, to: Object) -> None:
    """Append to a list of the pod's spec. What is absent or null on the way is made."""
    *parents, last = path
    for key in parents:
        to[key] = to.get(key) or {}
        to = to[key]
    to[last] = [*(to.get(last) or ()), value]


def by_field(spec: Object) -> None:
    """Add a condition on the name that always holds to each term. An empty term stays so: it matches no node."""
    terms = terms_of((spec.get("affinity") or {}).get("nodeAffinity") or {})
    for term in filter(lambda term: any(term.values()), terms):
        add(NOT_NOWHERE, "matchFields", to=term)
    if not terms:
        add({"matchFields": [NOT_NOWHERE]}, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms", to=spec)


CHANGES: Final[list[tuple[str, Callable[[Object], None]]]] = [
    ("SchedulingGates", lambda spec: add({"name": "quota"}, "schedulingGates", to=spec)),
    ("GangScheduling", lambda spec: spec.update(schedulingGroup={"podGroupName": "g"})),
    ("InterPodAffinity", lambda spec: add(TERM, "affinity", "podAffinity", REQUIRED, to=spec)),
    ("InterPodAffinity", lambda spec: add(TERM, "affinity", "podAntiAffinity", REQUIRED, to=spec)),
    ("PodTopologySpread", lambda spec: add({"topologyKey": "zone"}, "topologySpreadConstraints", to=spec)),
    ("NodePorts", lambda spec: spec["containers"][0].update(ports=[{"containerPort": 80, "hostPort": 80}])),
    ("DynamicResources", lambda spec: add({"name": "gpu"}, "resourceClaims", to=spec)),
    ("NodeDeclaredFeatures", lambda spec: spec["containers"][0].update(restartPolicyRules=[{}])),
    ("VolumeRestrictions", lambda spec: add({"name": "inline", "iscsi": {}}, "volumes", to=spec)),
    ("VolumeBinding", lambda spec: add(builders.claim_volume("in-tree", "in-tree"), "volumes", to=spec)),
    ("NodeAffinity", by_field),
    ("NodeVolumeLimits", lambda spec: add(builders.claim_volume("other", "of-another-driver"), "volumes", to=spec)),
    ("VolumeZone", lambda spec: add(builders.claim_volume("zone", "of-a-zone"), "volumes", to=spec)),
]


@pytest.mark.parametrize("plugin", dict.fromkeys(plugin for plugin, _ in CHANGES))
def test_a_rule_more_makes_no_answer_stronger(plugin: str) -> None:
    """Over the corpus: no node is required, and a list only stays if the rule allows it. Claims are for VMs' pods."""
    moves: dict[tuple[int, int], str] = {}
    changes = [change for name, change in CHANGES if name == plugin]
    of_claims = plugin in {"VolumeBinding", "NodeVolumeLimits", "VolumeZone"}
    for change, case in product(changes, (case for case in CASES if case.entry == VIRT_LAUNCHER or not of_claims)):
        (view, known), pod = before(case), copy.deepcopy(case.pod)
        change(pod["spec"])
        moves[known, strength(case, view, pod)] = case.name
    most = LISTED if plugin == "NodeVolumeLimits" else PREFERRED
    assert not {move: name for move, name in moves.items() if move[1] > min(move[0], most)}
    assert moves.keys() >= {(PINNED, PREFERRED), (LISTED, most), (UNCHANGED, UNCHANGED)}


TRIED: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
ALL: Final = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaceSelector": {}}


def added(nodes: Sequence[str]) -> dict[str, list[Object]]:
    """Return pods that are on these nodes, or will probably come to them."""
    liking = builders.node_affinity(preferred=dict.fromkeys(nodes, 100))
    equally = builders.node_affinity(required=map(builders.on_node, nodes), preferred=dict.fromkeys(nodes, 100))
    listed = builders.node_affinity(required=map(builders.on_node, (*nodes, "n")), preferred=dict.fromkeys(nodes, 100))
    pinned = builders.vm_pod("added", affinity=equally, decided="required")
    pod, large = builders_pods.pod, {"cpu": "9999"}
    return {
        "bound, and small": [pod(f"small-{node}", node=node, requests={"cpu": "1m"}) for node in nodes],
        "bound, and large": [pod(f"large-{node}", node=node, requests=large) for node in nodes],
        "bound, and repelling": [pod(f"repelling-{node}", node=node, away=[ALL]) for node in nodes],
        "nominated": [pod(node, requests=large) | {"status": {"nominatedNodeName": node}} for node in nodes],
        "pinned": [pinned],
        "pinned, and tried": [builders_pods.asking(pinned, large) | {"status": {"conditions": [TRIED]}}],
        "preferring": [builders.vm_pod("added-too", affinity=liking, decided="preferred")],
        "on a short list": [builders.vm_pod("added-too", affinity=listed, decided="preferred")],
    }


@pytest.mark.parametrize("kinds", [*([kind] for kind in added([])), [*added([])]], ids=" ".join)
def test_pods_more_make_no_answer_stronger(kinds: list[str]) -> None:
    """Over the corpus: pods that are bound, nominated, or have a record and a VM, on the nodes of the row's answer."""
    moves: dict[tuple[int, int], str] = {}
    for case in CASES:
        pods = added(case.expect.nodes or [each["metadata"]["name"] for each in case.nodes[:2]])
        more = {pod["metadata"]["name"]: pod for kind in kinds for pod in pods[kind]}
        view = cluster(*objects_of(case), *more.values(), vms=False)
        moves[before(case)[1], strength(case, view, case.pod)] = case.name
    assert not {move: name for move, name in moves.items() if move[1] > move[0]}
    assert moves.keys() >= {(PINNED, PINNED if kinds == ["bound, and small"] else PREFERRED), (LISTED, LISTED)}
    assert ((PINNED, UNCHANGED) in moves) is any(kind.endswith("tried") for kind in kinds)
