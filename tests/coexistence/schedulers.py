"""A second kube-scheduler in its own process, with profiles that score in other ways than the stock profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from coexistence import share_managers
from coexistence.cluster import FEW, MANY, VERSION, Cluster, nodes
from coexistence.forms import NOTHING, PIN, PREFERENCE, SEVERAL, SHORTLIST, TARGET, Form, filler, shortlist
from coexistence.rows import ANY_NODE, NO_NODE, Row
from support.control_plane.kube_api import Object
from support.control_plane.second_scheduler import second_scheduler

LOADED: Final = "node-h"  # the fullest node: MostAllocated scores it highest
_LOAD_GIB: Final = 400
_PROGRAM: Final = f"kube-scheduler {VERSION}, a second one"


class Profile(NamedTuple):
    """A profile of kube-scheduler.

    `heeds`: whether a preference for a node outweighs its other scores; `heeds_pods`: one for the node of another pod.
    """

    name: str
    settings: str
    scores: Mapping[str, Any]
    fit: Mapping[str, Any] | None = None
    heeds: bool = True
    heeds_pods: bool = True


_MOST: Final = {"type": "MostAllocated"}
_RATIO: Final = {
    "type": "RequestedToCapacityRatio",
    "resources": [{"name": "memory", "weight": 3}, {"name": "cpu", "weight": 1}],
    "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
}
_PACKING: Final = {  # what Trimaran's TargetLoadPacking does with measured load: pack a node up to 40 %, then spread
    "type": "RequestedToCapacityRatio",
    "resources": [{"name": "cpu", "weight": 1}],
    "requestedToCapacityRatio": {
        "shape": [{"utilization": 0, "score": 4}, {"utilization": 40, "score": 10}, {"utilization": 100, "score": 0}]
    },
}
_ALL_SCORES: Final = [{"name": "*"}]
PROFILES: Final = (
    Profile("most-allocated", "NodeResourcesFit MostAllocated", {}, _MOST),
    Profile("capacity-ratio", "NodeResourcesFit RequestedToCapacityRatio", {}, _RATIO),
    Profile(
        "fit-outweighs",
        "NodeResourcesFit MostAllocated with weight 100",
        {"enabled": [{"name": "NodeResourcesFit", "weight": 100}]},
        _MOST,
        heeds=False,
        heeds_pods=False,
    ),
    Profile(
        "affinity-outweighs",
        "NodeAffinity with weight 100, NodeResourcesFit MostAllocated",
        {"enabled": [{"name": "NodeAffinity", "weight": 100}]},
        _MOST,
    ),
    Profile(
        "no-affinity-score",
        "NodeResourcesFit MostAllocated, no score of NodeAffinity",
        {"disabled": [{"name": "NodeAffinity"}]},
        _MOST,
        heeds=False,
    ),
    Profile(
        "trimaran-like",
        "Trimaran's plugin set: no NodeResourcesBalancedAllocation; packing to 40 % for TargetLoadPacking",
        {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]},
        _PACKING,
    ),
    Profile(
        "one-score",
        "NodeResourcesFit RequestedToCapacityRatio is the only score",
        {"disabled": _ALL_SCORES, "enabled": [{"name": "NodeResourcesFit", "weight": 1}]},
        _RATIO,
        heeds=False,
        heeds_pods=False,
    ),
)


def rows(cluster: Cluster) -> Iterator[Row]:
    """Each form under each profile."""
    forms = (PIN, SEVERAL, PREFERENCE, TARGET, NOTHING)
    load = filler("load", LOADED, _LOAD_GIB)
    described = [*(each for form in forms for each in form.objects()), *share_managers.objects()]
    with second_scheduler(cluster.plane, [_profile(each) for each in PROFILES]):
        cluster.become([*nodes(FEW), load, *described])
        with cluster.webhook():
            found = {profile.name: [*_vms(cluster, forms, profile), *_pods(cluster, profile)] for profile in PROFILES}
        cluster.become([*nodes(MANY), load, *SHORTLIST.objects()])
        with cluster.webhook():
            for profile in PROFILES:
                found[profile.name] += _vms(cluster, [SHORTLIST], profile)
    for some in found.values():
        yield from some


def _vms(cluster: Cluster, forms: Iterable[Form], profile: Profile) -> Iterator[Row]:
    for form in forms:
        pod = cluster.create(form, schedulerName=profile.name)
        seen = _node(cluster, pod)
        assert not form.listed or seen in (NO_NODE, *shortlist(pod)), seen
        yield Row(_PROGRAM, profile.settings, form.title, _expected(form, profile), seen)


def _pods(cluster: Cluster, profile: Profile) -> Iterator[Row]:
    for each, heeds in ((share_managers.HOME, profile.heeds_pods), (share_managers.BY_NODE, profile.heeds)):
        seen = _node(cluster, each.create(cluster, profile.name))
        yield Row(_PROGRAM, profile.settings, each.form, share_managers.VM_NODE if heeds else ANY_NODE, seen)


def _expected(form: Form, profile: Profile) -> str:
    if form is NOTHING or (form in (PREFERENCE, SHORTLIST) and not profile.heeds):
        return ANY_NODE
    return " or ".join(form.homes)


def _node(cluster: Cluster, pod: Object) -> str:
    found = cluster.placed(pod) or NO_NODE
    cluster.api.delete(pod)
    return found


def _profile(profile: Profile) -> Mapping[str, Any]:
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": _strategy(profile)}}
    return {"schedulerName": profile.name, "plugins": {"score": profile.scores}, "pluginConfig": [fit]}


def _strategy(profile: Profile) -> Mapping[str, Any]:
    resources = [{"name": "memory", "weight": 1}, {"name": "cpu", "weight": 1}]
    return {"resources": resources, **(profile.fit or {})}
