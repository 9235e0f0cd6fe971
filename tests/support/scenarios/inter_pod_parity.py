"""Situations on a real control plane: where kube-scheduler puts a pod that can only go to one node, and what core says.

All situations are there at once, several on the same nodes: labels, keys and namespaces keep them apart, and core has
all of them in one index. Core reads the
stored pods from the API server. It reads the incoming pod as it is at admission: not stored yet, so that nothing has
been merged into it, and not pinned.

An incoming pod can go to one node only, in one of two ways. By name, as we pin it. Or by taints, of which it
tolerates one node's alone: then the scheduler applies topology spread constraints as their owner meant them, which a
pin overrides.
"""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any, Final, NamedTuple

from msgspec import convert
from support.control_plane.kube_api import Api, Object
from support.control_plane.scheduled import is_judged, refusal
from support.models import oracle
from support.models.plugin_runner import add, cycle_of, snapshot
from support.models.scheduler_model import REQUIRED, Situation, refusals
from support.objects import builders
from support.strategies.inter_pod_situations import Maker, Setting
from support.waits import MAX_WAIT_SECONDS

from webhook.core.api.node import Node
from webhook.core.reasons import Why
from webhook.core.scheduler.plugins import inter_pod_affinity, pod_topology_spread
from webhook.core.scheduler.state.cache import SchedulerCache

BY_NAME: Final = "by name"
BY_TAINTS: Final = "by taints"
PASSED: Final = "allowed"

_WRITERS: Final = 6
_ONLY: Final = "tests/only"  # the key of a taint that every node has, with its name
ASKS: Final = "tests/asks"  # a label of those that are to be scheduled
_BARRIER: Final = "barrier"
_SERVERS_OWN: Final = ("deletionTimestamp", "finalizers")


class Outcome(NamedTuple):
    """The results for one incoming pod.

    Attributes:
        way: how it was confined to one node.
        core: the ruling, of the pod as it is at admission.
        model: the filters that `scheduler_model` says refuse it, confined as it is.
        scheduler: its words, or None where it has bound the pod.
    """

    name: str
    way: str
    core: Why | None
    model: Sequence[str]
    scheduler: str | None

    @property
    def unsafe(self) -> bool:
        """Whether a pin of ours would have stranded the pod."""
        return self.core is None and self.scheduler is not None

    @property
    def overcautious(self) -> bool:
        """Whether we would have left out a pin that could have been."""
        return self.core is not None and self.scheduler is None

    @property
    def said(self) -> str:
        """ALLOWED, or the code of core's cause."""
        return PASSED if self.core is None else self.core.reason.code


class Asked(NamedTuple):
    """A situation, and the way in which its incoming pod can go to one node only."""

    situation: Situation
    way: str

    @property
    def pod(self) -> Object:
        """The incoming pod as it is created: pinned, or as core sees it."""
        pod = copy.deepcopy(self.situation.incoming_pod)
        if self.way == BY_NAME:
            pin = builders.node_affinity(required=[builders.on_node(self.situation.candidate)])
            pod["spec"]["affinity"] |= pin
        return pod


def drawn(seed: int, groups: int, rounds: int) -> Iterator[Asked]:
    """Situations: `groups` sets of nodes, each used `rounds` times."""
    for group in range(groups):
        nodes: Sequence[Object] = ()
        for turn in range(rounds):
            setting = Setting(f"g{group}", mark=f"g{group}-r{turn}", node_count=4 + group % 3)
            maker = Maker.seeded(seed + group * rounds + turn, setting)
            nodes = nodes or _fenced(maker.nodes())
            way = maker.random.choice((BY_NAME, BY_TAINTS))
            yield Asked(_feasible(maker.situation(nodes), way), way)


def _fenced(nodes: Sequence[Object]) -> Sequence[Object]:
    for node in nodes:
        node["spec"].setdefault("taints", []).append(builders.taint(f"{_ONLY}={node['metadata']['name']}:NoSchedule"))
    return nodes


def _feasible(situation: Situation, way: str) -> Situation:
    """The situation with a candidate that only other pods can make kube-scheduler reject."""
    pod = situation.incoming_pod
    fence: Object = {"key": _ONLY, "operator": "Exists"}
    if way == BY_TAINTS:
        fence = {"key": _ONLY, "operator": "Equal", "value": situation.candidate}
    pod["spec"]["tolerations"].append(fence)
    if not oracle.admits(pod, situation.node):
        pod["spec"].pop("nodeSelector", None)
        if not oracle.admits(pod, situation.node):
            pod["spec"]["tolerations"].append({"key": "reserved", "operator": "Exists"})
    pod["metadata"]["labels"][ASKS] = "true"
    assert oracle.admits(pod, situation.node)
    return situation


class Parity:
    """Plays situations. Everything stays: give it a control plane that goes, for to delete it all takes longer.

    `label_keys`: whether the API server merges matchLabelKeys of terms, or drops them, as Kubernetes 1.30 does.
    """

    def __init__(self, api: Api, *, label_keys: bool = True) -> None:
        self._api, self._label_keys = api, label_keys

    def outcomes(self, asked: Sequence[Asked]) -> list[Outcome]:
        """Return the results for all of them."""
        situations = [each.situation for each in asked]
        nodes = {_name(node): node for each in situations for node in each.nodes}
        namespaces = {name: labels for each in situations for name, labels in each.namespaces.items()}
        with ThreadPoolExecutor(_WRITERS) as writers:
            list(writers.map(self._api.create, itertools.starmap(_namespace, namespaces.items())))
            list(writers.map(self._api.create, nodes.values()))
            list(writers.map(self._put_there, [pod for each in situations for pod in each.pods]))
            self._until_seen()
            core = Core(nodes.values(), self._api.items("v1", "Pod"))
            ruled = [core.why_not(each) for each in situations]
            list(writers.map(self._api.create, [each.pod for each in asked]))
        done = self._judged(len(asked))
        names = [_key(situation.incoming_pod) for situation in situations]
        return [
            Outcome(name, each.way, why, refusals(self._stored(each), pinned=each.way == BY_NAME), done[name])
            for name, each, why in zip(names, asked, ruled, strict=True)
        ]

    def _stored(self, asked: Asked) -> Situation:
        """The situation as this API server stores it."""
        if self._label_keys:
            return asked.situation
        pod = copy.deepcopy(asked.situation.incoming_pod)
        for kind in ("podAffinity", "podAntiAffinity"):
            for term in pod["spec"]["affinity"].get(kind, {}).get(REQUIRED, ()):
                for keys in ("matchLabelKeys", "mismatchLabelKeys"):
                    term.pop(keys, None)
        return replace(asked.situation, incoming_pod=pod)

    def _put_there(self, pod: Object) -> None:
        metadata = {key: value for key, value in pod["metadata"].items() if key not in _SERVERS_OWN}
        created = self._api.create({**pod, "metadata": metadata})
        if "deletionTimestamp" in pod["metadata"]:  # with a grace that only a kubelet can end
            self._api.delete(created, gracePeriodSeconds="600")

    def _until_seen(self) -> None:
        """Until the scheduler knows the last pod that was put on a node: it comes after all others, on every watch."""
        [node] = _fenced([builders.node(_BARRIER)])
        self._api.create(_namespace(_BARRIER, {}))
        self._api.create(node)
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {_BARRIER: "there"}}}
        pin = builders.node_affinity(required=[builders.on_node(_BARRIER)])
        self._api.create(_pod("there", {_BARRIER: "there"}, nodeName=_BARRIER))
        affinity, fence = {**pin, "podAntiAffinity": {REQUIRED: [term]}}, {"key": _ONLY, "operator": "Exists"}
        probe = _pod("probe", {}, affinity=affinity, tolerations=[fence])
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        refused = False
        while not refused:
            assert time.monotonic() < deadline, "the scheduler does not see the last pod"
            judged = self._api.wait_for(self._api.create(probe), lambda pod: bool(pod and is_judged(pod)))
            assert judged is not None
            refused = refusal(judged) is not None
            self._api.delete(judged)

    def _judged(self, count: int) -> dict[str, str | None]:
        """NAMESPACE/NAME -> why the scheduler refuses it, None where it was bound; of as many pods that ask."""
        done: dict[str, str | None] = {}
        asking = {"labelSelector": ASKS}
        with closing(self._api.watch("v1", "Pod", seconds=MAX_WAIT_SECONDS, **asking)) as events:
            for event in events:
                if is_judged(event["object"]):
                    done[_key(event["object"])] = refusal(event["object"])
                if len(done) == count:
                    return done
        raise AssertionError(f"{count - len(done)} of {count} pods were not judged in {MAX_WAIT_SECONDS} s")


class Core:
    """What core makes of all the pods that are there, in one cache."""

    def __init__(self, nodes: Iterable[Object], pods: Iterable[Object]) -> None:
        self._nodes = {_name(node): convert(node, Node) for node in nodes}
        self._scheduler_cache = SchedulerCache()
        for pod in pods:
            if pod["spec"].get("nodeName"):
                add(self._scheduler_cache, pod)

    def why_not(self, situation: Situation) -> Why | None:
        """Return what the two plugins have against the node, or against any node."""
        nodes = snapshot(self._nodes, self._scheduler_cache)
        cycle = cycle_of(situation.incoming_pod, nodes)
        node = nodes.node_info(situation.candidate)
        why = inter_pod_affinity.filter_node(cycle, node) or inter_pod_affinity.pre_filter(cycle)
        return why or pod_topology_spread.pre_filter(cycle)


def _name(described: Object) -> str:
    name: str = described["metadata"]["name"]
    return name


def _key(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{_name(pod)}"


def _namespace(name: str, labels: Mapping[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _pod(name: str, labels: Mapping[str, str], **spec: Any) -> Object:
    metadata = {"name": name, "namespace": _BARRIER, "labels": labels}
    containers = [{"name": "main", "image": "none"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}
