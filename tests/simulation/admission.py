"""The admission of a pod: which webhook is asked, which of its replicas, and what the API server does with the answer.

Upstream: apiserver pkg/admission/plugin/webhook/mutating. Real are the AdmissionReview, the decision of core, the JSON
patch, and that a call which gets no answer admits the pod as it is (failurePolicy Ignore).
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import jsonpatch
import msgspec
from simulation.api_server import LONGHORN, POD, ApiServer, Object, is_share_manager, is_virt_launcher, key_of
from simulation.engine import Engine
from simulation.watcher import Watcher
from support.objects import builders

from webhook.core import admit as core
from webhook.core.admit import Answer, Entry, PodCreation
from webhook.core.decision import Pin
from webhook.core.opt_in import Policy

_CALL_SECONDS: Final = (0.001, 0.006)  # from the API server to the answer: tests/bench/README.md
_STORE_SECONDS: Final = (0.002, 0.008)  # from the answer to the stored pod
_LABEL_MIGRATION: Final = "kubevirt.io/migrationJobUID"
_ENCODE: Final = msgspec.json.Encoder().encode
_ENTRIES: Final = {entry.title: entry for entry in Entry if entry.title in ("virt-launcher", "share-manager")}
Webhook = Callable[[Object], Object]  # from a pod to the pod as it will be stored


class Admitted(NamedTuple):
    """One answer, for the invariants: when, for which pod, by which replica, and what was answered."""

    at: float
    pod: Object
    after: Object
    answer: Answer
    replica: Watcher


class Replicas:
    """The webhook itself: the API server asks any of its replicas.

    Attributes:
        lost_share: the share of calls that reach no replica, and the share of answers that do not arrive.
        admitted: is called with each answer that reached the API server.
        change: changes an answer before it is sent: a planted fault.
    """

    def __init__(self, engine: Engine, replicas: Sequence[Watcher]) -> None:
        self.engine = engine
        self.replicas = replicas
        self.lost_share = 0.0
        self.admitted: list[Callable[[Admitted], object]] = []
        self.change: Callable[[PodCreation, Answer, Watcher], Answer] = lambda _creation, answer, _watcher: answer
        self._rng = engine.rng("admission")
        self._policy = Policy()
        self._calls = 0

    def __call__(self, pod: Object) -> Object:
        """Ask one replica, if an entry is for this pod."""
        entry = _ENTRIES.get(entry_title(pod))
        if entry is None:
            return pod
        replica = self._rng.choice(self.replicas)
        if self._rng.random() < self.lost_share or self.engine.now < replica.down_until:
            self.engine.trace(f"no answer for {_title(pod)}")
            return pod
        admitted = self._ask(replica, pod, entry)
        if self._rng.random() < self.lost_share:  # the replica counts the pod, and the pod has none of its terms
            self.engine.trace(f"the answer for {_title(pod)} is lost")
            return pod
        for listener in self.admitted:
            listener(admitted)
        return admitted.after

    def _ask(self, watcher: Watcher, pod: Object, entry: Entry) -> Admitted:
        self._calls += 1
        namespace = pod["metadata"].get("namespace", LONGHORN)
        review = builders.review(pod, uid=f"call-{self._calls}", namespace=namespace)
        creation = core.read(_ENCODE(review), entry)
        assert isinstance(creation, PodCreation), creation
        counts = entry is not Entry.SHARE_MANAGER
        view = watcher.view()
        if counts:
            watcher.caches.counted.forget(creation.pod, creation.namespace)
        answer = core.answer(creation, view, self._policy)
        while view.missing:
            view = watcher.read(view, view.missing)
            answer = core.answer(creation, view, self._policy)
        answer = self.change(creation, answer, watcher)
        if counts and isinstance(answer.decision, Pin):
            watcher.assume((answer.of_owner or creation).before, creation.namespace, answer.decision)
        return Admitted(self.engine.now, pod, patched(pod, answer), answer, watcher)


class Creation:
    """Creates pods: admission, then the store. Two pods of one moment overtake one another."""

    def __init__(self, engine: Engine, api: ApiServer, webhook: Webhook) -> None:
        self.webhook = webhook
        self._engine = engine
        self._api = api
        self._rng = engine.rng("creation")
        self._names = 0

    def create(self, pod: Object, done: Callable[[Object], object] = lambda _: None) -> None:
        """Create the pod, and call `done` with it when it is stored. The caller's `act` has found the API server."""
        self._engine.after(self._rng.uniform(*_CALL_SECONDS), lambda: self._admit(pod, done))

    def _admit(self, pod: Object, done: Callable[[Object], object]) -> None:
        after = self.webhook(pod)
        self._engine.after(self._rng.uniform(*_STORE_SECONDS), lambda: self._store(after, done))

    def _store(self, pod: Object, done: Callable[[Object], object]) -> None:
        meta = pod["metadata"]
        if "name" not in meta:
            self._names += 1
            meta["name"] = f"{meta.pop('generateName')}{suffix(self._rng)}{self._names}"
        meta["creationTimestamp"] = self._engine.timestamp
        meta["uid"] = f"uid-{meta['name']}"
        pod["status"] = {"phase": "Pending"}
        if self._api.pod(key_of(pod)) is None:
            self._api.put(POD, pod)
            done(pod)


def suffix(rng: random.Random) -> str:
    """Return what the API server adds to a generateName."""
    return "".join(rng.choice("bcdfghjklmnpqrstvwxz2456789") for _ in range(5))


def _title(pod: Object) -> str:
    return str(pod["metadata"].get("generateName") or pod["metadata"]["name"])


def entry_title(pod: Object) -> str:
    """Return which entry of the webhook configuration selects the pod by its labels; empty for none."""
    if is_share_manager(pod):
        return "share-manager"
    starts = is_virt_launcher(pod) and _LABEL_MIGRATION not in pod["metadata"]["labels"]
    return "virt-launcher" if starts else ""


def patched(pod: Object, answer: Answer) -> Object:
    """Return the pod with the patch of an answer, read from its bytes as the API server reads them."""
    response = json.loads(answer.body)["response"]
    if "patch" not in response:
        return pod

    after: Object = jsonpatch.apply_patch(pod, json.loads(base64.b64decode(response["patch"])))
    return after


def required_nodes(pod: Object) -> set[str]:
    """Return the nodes that the pod's affinity requires, by their names."""
    required = node_affinity(pod).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return named_nodes(required.get("nodeSelectorTerms") or [])


def node_affinity(pod: Object) -> Object:
    """Return the node affinity."""
    return (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}


def named_nodes(terms: list[Object]) -> set[str]:
    """Return the nodes that these terms name."""
    fields = [field for term in terms for field in term.get("matchFields") or () if field["operator"] == "In"]
    return {value for field in fields for value in field["values"]}
