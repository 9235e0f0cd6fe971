"""Pods of strangers beside each row of the corpus: unbound ones change no answer, bound ones make none stronger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.objects import builders, builders_kubevirt, builders_pods, corpus
from support.objects.corpus import Case
from support.objects.embedded import embedded, policy

from webhook.core.admit import Answer, Entry, admit
from webhook.core.decision import outcome

Object = dict[str, Any]
NODES: Final = ("node-a", "node-b")
HOST: Final = "kubernetes.io/hostname"
CASES: Final = [case for case in corpus.load() if case.creates_pod]
ALONE: Final = [case for case in CASES if "podAffinity" not in (case.pod["spec"].get("affinity") or {})]
ROWS_AT_LEAST: Final = 500
STRENGTH: Final = ("unchanged", "preferred", "required")
# With VirtualMachineInstances in the files it is known which of them exist. None of the strangers' does.
SOME_VMI: Final = builders_kubevirt.virtual_machine_instance("known", ["other"], namespace="elsewhere", uid="known")
ANYBODY: Final[Object] = {}


@st.composite
def strangers(draw: st.DrawFn, *, bound: bool) -> Object:
    """A pod of any labels, requests and affinity, with or without a record, and perhaps of a VM that does not exist."""
    nodes = draw(st.lists(st.sampled_from(NODES), unique=True, min_size=1))
    terms = draw(st.lists(st.sampled_from((HOST, "zone", "rack")), unique=True, max_size=2))
    affinity = builders.node_affinity(
        required=map(builders.on_node, nodes) if draw(st.booleans()) else (),
        preferred=dict.fromkeys(nodes, 100) if draw(st.booleans()) else None,
    )
    if terms:
        away = [{"topologyKey": key, "labelSelector": ANYBODY, "namespaceSelector": ANYBODY} for key in terms]
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": away}
    pod = builders.vm_pod(
        "stranger",
        namespace=draw(st.sampled_from(("vms", "shop", "longhorn-system"))),
        node=draw(st.sampled_from(NODES)) if bound else None,
        claims=(),
        opt_in=draw(st.sampled_from((None, "true"))),
        created="2026-01-01T00:00:00Z",
        decided=draw(st.sampled_from((None, "required", "preferred", "unchanged"))),
        affinity=affinity,
    )
    if not draw(st.booleans()):
        pod["metadata"]["labels"] = {"app": draw(st.sampled_from(("web", "db")))}
    if pod["metadata"]["namespace"] == "longhorn-system":  # a record counts there: strangers can create no pods there
        pod["metadata"]["annotations"] = None
    if not bound and draw(st.booleans()):
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        pod["status"]["conditions"] = [condition]
    return builders_pods.asking(
        pod, {"cpu": draw(st.sampled_from(("1m", "1", "60")))}, draw(st.sampled_from((None, 5900)))
    )


def decided(case: Case, *more: Object) -> tuple[str, Sequence[Any]]:
    """The decision of a row whose cluster has these objects, too, and its patch."""
    there = replace(case, objects=(*case.objects, SOME_VMI, *more))
    entry = next(entry for entry in Entry if entry.title == case.entry)
    answer = admit(json.dumps(case.review).encode(), embedded.__wrapped__(there), policy(case), entry)
    assert isinstance(answer, Answer)
    response = json.loads(answer.body)["response"]
    return outcome(answer.decision), response


def test_the_corpus_is_large_enough() -> None:
    """Rows that got lost would pass."""
    assert len(CASES) >= ROWS_AT_LEAST


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(case=st.sampled_from(CASES), pod=strangers(bound=False))
def test_an_unbound_pod_of_a_stranger_changes_no_answer(case: Case, pod: Object) -> None:
    """Nor a term of it: neither decision, nor reason, nor patch."""
    assert decided(case, pod) == decided(case)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(case=st.sampled_from(ALONE), pod=strangers(bound=True))
def test_a_bound_pod_makes_no_answer_stronger(case: Case, pod: Object) -> None:
    """It takes resources and has terms. Only a pod that must be near other pods can win by one."""
    (before, _), (after, _) = decided(case), decided(case, pod)
    assert STRENGTH.index(after) <= STRENGTH.index(before)
