"""The result of an admission, as the API server and the scheduler see it, and what holds for every result."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import hypothesis
import jsonpatch
from hypothesis import settings
from hypothesis.errors import NoSuchExample
from hypothesis.strategies import SearchStrategy
from support.fakes.views import MISSING, Asked, Gap, ViewWithGaps, cluster
from support.models import oracle
from support.models.cluster_model import ClusterModel
from support.strategies.strategies import Scenario, review_of

from webhook.core.admit import AGAIN, Answer, admit
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH, ANNOTATION_DECISION, ANNOTATION_NO_EVICTION
from webhook.core.view import ClusterView, NoObject, Ref

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Outcome:
    """An answer as the API server reads it: the response, its patch, and the pod with the patch applied."""

    response: dict[str, Any]
    patch: list[dict[str, Any]]
    pod: dict[str, Any]

    @property
    def hard_pin(self) -> set[str]:
        """The nodes that the answer requires."""
        told = self.response["auditAnnotations"]
        return set(told["node"].split(",")) if told["decision"] == "required" else set()


def ask(pod: dict[str, Any], scenario: Scenario, view: ClusterView) -> Answer:
    """Admit `pod` by the scenario's entry of the webhook configuration."""
    return admit(review_of(pod, namespace=scenario.namespace), view, scenario.policy, scenario.entry)


def outcome(pod: dict[str, Any], scenario: Scenario, view: ClusterView | None = None) -> Outcome:
    """Admit `pod` in a scenario and apply the patch as kube-apiserver does."""
    return read(ask(pod, scenario, view or cluster(*scenario.objects)), pod)


def read(answer: Answer, pod: dict[str, Any]) -> Outcome:
    """Return the outcome from the answer's bytes alone."""
    response = json.loads(answer.body)["response"]
    told = response["auditAnnotations"]
    response["auditAnnotations"] = {key.removeprefix(AGAIN): value for key, value in told.items()}
    patch = json.loads(base64.b64decode(response.get("patch", "W10=")))
    apart = json.loads(json.dumps(pod))  # two terms that are one object here would both be patched
    return Outcome(response, patch, jsonpatch.apply_patch(apart, patch))


def node_affinity(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod's node affinity, empty if it has none."""
    return (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}


def places(scenario: Scenario) -> Iterator[dict[str, Any]]:
    """Return every node of the cluster, and for each a second node with the same labels and another name."""
    for node in ClusterModel(scenario.objects).nodes:
        yield node
        yield {**node, "metadata": {**node["metadata"], "name": "elsewhere"}}


_OURS = (ANNOTATION_DECISION, ANNOTATION_APPLIED_PATCH, ANNOTATION_NO_EVICTION)


def without_webhook_parts(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod without the parts that can change. Absent, null and empty parents are equal to Kubernetes."""
    metadata, spec = dict(pod["metadata"]), dict(pod["spec"])
    annotations = {k: v for k, v in (metadata.pop("annotations", None) or {}).items() if k not in _OURS}
    affinity = {k: v for k, v in (spec.pop("affinity", None) or {}).items() if k != "nodeAffinity"}
    return {**pod, "metadata": metadata, "spec": spec, "annotations": annotations, "affinity": affinity}


def terms_of(affinity: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the required terms of a node affinity."""
    return (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or []


def assert_appended(old: dict[str, Any], new: dict[str, Any]) -> None:
    """The old preferences of an affinity are unchanged, and come before all new ones."""
    wishes = old.get(PREFERRED) or []
    assert (new.get(PREFERRED) or [])[: len(wishes)] == wishes


def assert_terms_kept(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Each required term of a node affinity is unchanged, except for fields that were appended."""
    for term, now in zip(terms_of(old), terms_of(new), strict=False):
        fields = term.get("matchFields") or []
        assert {**now, "matchFields": 0} == {**term, "matchFields": 0}
        assert (now.get("matchFields") or [])[: len(fields)] == fields


def assert_admitted(found: Outcome) -> None:
    """The response is allowed, and has patch and patchType together or neither."""
    assert found.response["allowed"] is True
    assert found.response.get("patchType") == ("JSONPatch" if found.patch else None)


def assert_second_admission_changes_nothing(scenario: Scenario) -> None:
    """A pod that was patched gets no operation, and the same decision."""
    first = outcome(scenario.pod, scenario)
    second = outcome(first.pod, scenario)
    assert second.patch == []
    assert second.response["auditAnnotations"] == first.response["auditAnnotations"]


def assert_affinity_stays_valid(old: dict[str, Any], new: dict[str, Any]) -> None:
    """A valid node affinity stays valid, and the new preferences are valid."""
    if not oracle.affinity_problems(old):
        assert oracle.affinity_problems(new) == []
    preferences = (new.get(PREFERRED) or [])[len(old.get(PREFERRED) or []) :]
    assert oracle.affinity_problems({PREFERRED: preferences}) == []


def assert_read_piece_by_piece(
    scenario: Scenario, unread: Iterable[Ref], lost: Mapping[Ref, NoObject] | None = None
) -> int:
    """Reading what is missing and asking again ends, and decides as with all read at once.

    Nothing is read that core does not ask for if all is read at once.

    `lost` are the answers that no read gives. With `lost` the view that is asked at once lacks what nobody asked for:
    a short list has only nodes that the view has.

    Returns:
        How often something was read.
    """
    rounds = 0
    gaps: dict[Ref, Gap] = {**dict.fromkeys(unread, MISSING), **(lost or {})}
    whole, read = cluster(*scenario.objects), set[Ref]()
    view = ViewWithGaps(whole, gaps)
    answer = ask(scenario.pod, scenario, view)
    while view.missing:
        rounds += 1
        read |= view.missing.keys()
        for ref in view.missing:
            del gaps[ref]  # a KeyError would be a reference that was read before
        view = ViewWithGaps(whole, gaps)
        answer = ask(scenario.pod, scenario, view)
    at_once = Asked(whole, {} if lost is None else {**gaps, **lost})
    assert answer.body == ask(scenario.pod, scenario, at_once).body
    assert read <= at_once.asked
    return rounds


def assert_reached(
    scenarios: SearchStrategy[Scenario], interesting: Mapping[str, Callable[[Scenario], bool]], examples: int
) -> None:
    """Each of these holds for at least one of so many examples."""
    left = dict(interesting)

    def all_reached(scenario: Scenario) -> bool:
        for name in [name for name, holds in left.items() if holds(scenario)]:
            del left[name]
        return not left

    search = settings(max_examples=examples, derandomize=True, phases=[hypothesis.Phase.generate])
    with suppress(NoSuchExample):
        hypothesis.find(scenarios, all_reached, settings=search)
    assert not left
