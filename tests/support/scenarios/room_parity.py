"""Situations on a real control plane: what kube-scheduler does with each pod, and what core says of it.

Core reads what the API server has stored, as the program would: pods and nodes by lists, the pod that asks as its
CREATE answers. All situations are there at once, each on a node of its
own; the pods that ask come last, when the scheduler has shown that it knows of all others.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, Self, TypeVar

from msgspec import convert
from support.control_plane.kube_answers import is_judged, refusal
from support.control_plane.kube_api import Api, Object
from support.fakes.views import cluster
from support.objects import builders
from support.strategies.room_situations import ASKED, LABEL, NAMESPACE, THERE, Situation, zone_nodes
from support.waits import MAX_WAIT_SECONDS

from webhook.core.api.affinity import REQUIRED
from webhook.core.api.pod import Pod
from webhook.core.decision import NodeFit
from webhook.core.placement.feasibility import evaluate
from webhook.core.reasons import Reason
from webhook.core.scheduler.cycle_state import CycleState

T = TypeVar("T")
FITS: Final = "fits"

_WRITERS: Final = 6
OURS: Final = "TaintToleratedWithoutKey"  # a rule of the webhook, whatever the scheduler finds
_LOOK_SECONDS: Final = 0.5
_BARRIER: Final = "parity-barrier"


class Outcome(NamedTuple):
    """What was said of one situation: FITS or the cause that core gives, and None or the scheduler's words."""

    name: str
    core: str
    scheduler: str | None

    @property
    def unsafe(self) -> bool:
        """Whether a pin of ours would have stranded the pod."""
        return self.core == FITS and self.scheduler is not None

    @property
    def overcautious(self) -> bool:
        """Whether we would have left out a pin that could have been."""
        return self.core != FITS and self.scheduler is None


class Parity:
    """A context manager. Everything stays: give it a control plane that goes, for to delete it all takes longer."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._writers = ThreadPoolExecutor(_WRITERS)

    def __enter__(self) -> Self:
        self._api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for node in zone_nodes():
            self._api.create(node)
        return self

    def __exit__(self, *_: object) -> None:
        self._writers.shutdown()

    def outcomes(self, situations: Sequence[Situation]) -> list[Outcome]:
        """Return the results for all of them."""
        self._each(self._store, situations)
        self._until_seen()
        there = Stored(self._api)
        asked = self._each(self._api.create, [situation.pod for situation in situations])
        said = {pod["metadata"]["name"]: there.verdict(pod) for pod in asked}
        done = self._judged(len(asked))
        outcomes = [Outcome(each.name, said[each.name], done[each.name]) for each in situations]
        for index, outcome in enumerate(outcomes):  # one that came too early for a watch is not judged by that
            if outcome.unsafe or (outcome.overcautious and outcome.core != OURS):
                outcomes[index] = outcome._replace(scheduler=self._again(outcome.name, situations))
        return outcomes

    def _each(self, act: Callable[[Any], T], these: Iterable[Any]) -> list[T]:
        return list(self._writers.map(act, these))

    def _store(self, situation: Situation) -> None:
        self._api.create(situation.node)
        for each in situation.far:
            self._api.create(each)
        for existing in situation.existing:
            created = self._api.create(existing.pod)
            if existing.phase:
                self._api.replace_status({**created, "status": {"phase": existing.phase}})
            if existing.deleted:  # with the grace that only a kubelet can end
                self._api.delete(created, gracePeriodSeconds="600")

    def _until_seen(self) -> None:
        """Until the scheduler knows the last pod that was put on a node: it comes after all others, on every watch."""
        node = builders.node(_BARRIER, labels={LABEL: "node"})
        node["status"]["allocatable"]["pods"] = "1"
        self._api.create(node)
        meta = {"name": f"{_BARRIER}-there", "namespace": NAMESPACE, "labels": THERE}
        spec = {"containers": [{"name": "c", "image": "none"}]}
        last = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**spec, "nodeName": _BARRIER}}
        self._api.create(last)
        probe_meta = {"name": f"{_BARRIER}-asks", "namespace": NAMESPACE, "labels": {LABEL: "barrier"}}
        pinned = {**spec, "affinity": builders.node_affinity(required=[builders.on_node(_BARRIER)])}
        probe = {**last, "metadata": probe_meta, "spec": pinned}
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        while True:
            created = self._api.create(probe)
            judged = self._api.wait_for(created, lambda pod: bool(pod and is_judged(pod)), what="judged")
            self._api.delete(created)
            if judged and "Too many pods" in (refusal(judged) or ""):
                return
            assert time.monotonic() < deadline, judged

    def _judged(self, count: int) -> dict[str, str | None]:
        """Name -> why the scheduler refuses it, None where it was bound; of as many pods that ask."""
        last, deadline = -1, 0.0
        selected = {"labelSelector": f"{LABEL}={ASKED[LABEL]}"}
        while True:
            pods = self._api.items("v1", "Pod", NAMESPACE, **selected)
            if len(pods) == count and all(map(is_judged, pods)):
                return {pod["metadata"]["name"]: refusal(pod) for pod in pods}
            left = [pod["metadata"]["name"] for pod in pods if not is_judged(pod)]
            if len(left) != last:
                last, deadline = len(left), time.monotonic() + MAX_WAIT_SECONDS
            assert time.monotonic() < deadline, f"{len(left)} of {len(pods)} pods were not judged: {left[:10]}"
            threading.Event().wait(_LOOK_SECONDS)

    def _again(self, name: str, situations: Sequence[Situation]) -> str | None:
        (pod,) = (situation.pod for situation in situations if situation.name == name)
        self._api.delete(pod)
        created = self._api.create(pod)
        return refusal(self._api.wait_for(created, lambda pod: bool(pod and is_judged(pod)), what="judged"))


class Stored:
    """What the API server has of all situations, judged as the program judges it."""

    def __init__(self, api: Api) -> None:
        selected = {"labelSelector": LABEL}
        self._view = cluster(
            *_all("v1", "Node", api.items("v1", "Node", **selected)),
            *_all("v1", "Pod", api.items("v1", "Pod", NAMESPACE)),
        )

    def verdict(self, asked: Object) -> str:
        """FITS, or the code of the first cause that core finds against the pod on its node."""
        pod, name = convert(_with_a_choice(asked), Pod), asked["metadata"]["name"]
        verdict = evaluate(name, CycleState(pod, NAMESPACE, self._view.snapshot()), self._view)
        assert isinstance(verdict, NodeFit)
        if verdict.feasible:
            return FITS
        resource = f": {verdict.why.names['resource']}" if verdict.why.reason is Reason.NO_ROOM else ""
        return f"{verdict.why.reason.code}{resource}"


def _with_a_choice(pod: Object) -> Object:
    """The pod as if it might run on one other node: who has none is not asked whether there is room."""
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    terms = affinity[REQUIRED]["nodeSelectorTerms"]
    elsewhere = {**affinity, REQUIRED: {"nodeSelectorTerms": [*terms, builders.on_node(_BARRIER)]}}
    return {**pod, "spec": {**pod["spec"], "affinity": {**pod["spec"]["affinity"], "nodeAffinity": elsewhere}}}


def _all(version: str, kind: str, items: Iterable[Object]) -> list[Object]:
    """The items of a list, which do not tell their kind, as documents that do."""
    return [{"apiVersion": version, "kind": kind, **each} for each in items]


def causes(outcomes: Iterable[Outcome]) -> Counter[str]:
    """How often core said what."""
    return Counter(outcome.core for outcome in outcomes)
