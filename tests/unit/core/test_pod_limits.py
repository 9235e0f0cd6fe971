"""A pod with longer lists or texts than any of KubeVirt stays unchanged, at every entry, before it is evaluated."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from msgspec import convert
from msgspec.json import encode
from support.fakes.views import cluster
from support.objects import builders

from webhook.core.admit import Answer, Entry, admit, failed
from webhook.core.api.admission_review import BadReview
from webhook.core.api.pod import Pod
from webhook.core.decision import Leave
from webhook.core.opt_in import Policy
from webhook.core.pod_limits import _LIMITS, PART_BYTES_MAX, WHOLE_BYTES_MAX, why_too_large
from webhook.core.reasons import Reason, Why
from webhook.telemetry.record import admission_record

Object = dict[str, Any]
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def amounts(count: int) -> Object:
    """Containers with so many requests, limits and ports in all."""
    rest = {"name": "side", "resources": {"requests": {f"r/{each}": "1" for each in range(count - 3)}}}
    small = {"name": "main", "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 1}]}
    return {"containers": [small], "initContainers": [rest], "overhead": {"cpu": "1"}}


def node_affinity(count: int) -> Object:
    """Required and preferred terms with so many requirements and values, terms counted."""
    values = {"key": "a", "operator": "In", "values": [str(each) for each in range(count - 5)]}
    preference = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [values]}]}
    return {"affinity": {"nodeAffinity": {REQUIRED: terms, PREFERRED: [{"weight": 1, "preference": preference}]}}}


def between_pods(*terms: Object, strength: str = REQUIRED) -> Object:
    """Half of the terms keep pods near, the others apart."""
    half = len(terms) // 2
    return {"affinity": {"podAffinity": {strength: terms[:half]}, "podAntiAffinity": {strength: terms[half:]}}}


def values_between_pods(count: int) -> Object:
    """One term with so many labels, values and namespaces."""
    expression = {"key": "a", "operator": "In", "values": [str(each) for each in range(count - 3)]}
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [expression]}
    return between_pods({"labelSelector": selector, "namespaces": ["x"], "topologyKey": "zone"})


SPECS: dict[str, Callable[[int], Object]] = {
    "volumes": lambda count: {"volumes": [{"name": str(each)} for each in range(count)]},
    "containers": lambda count: {"containers": [{"name": "main"}], "initContainers": [{}] * (count - 1)},
    "requests, limits and ports": amounts,
    "labels of the nodeSelector": lambda count: {"nodeSelector": {str(each): "" for each in range(count)}},
    "requirements of the node affinity": node_affinity,
    "tolerations": lambda count: {"tolerations": [{"operator": "Exists"}] * count},
    "required terms between pods": lambda count: between_pods(*[{"topologyKey": "zone"}] * count),
    "labels and namespaces in terms between pods": values_between_pods,
    "preferred terms between pods": lambda count: between_pods(*[{"weight": 1}] * count, strength=PREFERRED),
    "topology spread constraints": lambda count: {"topologySpreadConstraints": [{"maxSkew": 1}] * count},
}


def pod(what: str, count: int) -> Object:
    """A pod with a list of this length."""
    made = builders.vm_pod("db01", containers=[{"name": "main"}])
    if what == "labels and annotations":
        made["metadata"] |= {"labels": {"a": "b"}, "annotations": {str(each): "" for each in range(count - 1)}}
    elif what == "owners":
        made["metadata"]["ownerReferences"] = [{"kind": "VirtualMachineInstance"}] * count
    else:
        made["spec"] |= SPECS[what](count)
    return made


@pytest.mark.parametrize("what", _LIMITS)
def test_a_list_may_be_as_long_as_its_limit_and_no_longer(what: str) -> None:
    """Nothing else in the pod is too long."""
    most = _LIMITS[what]
    assert why_too_large(convert(pod(what, most), Pod)) is None
    why = why_too_large(convert(pod(what, most + 1), Pod))
    assert why == Reason.POD_TOO_LARGE.why(count=most + 1, what=what, most=most)


TEXTS: dict[str, tuple[int, Callable[[str], Object]]] = {
    "metadata.namespace": (63, lambda text: {"metadata": {"namespace": text}}),
    "metadata.name": (253, lambda text: {"metadata": {"name": text}}),
    "metadata.generateName": (253, lambda text: {"metadata": {"generateName": text}}),
    "key in metadata.labels": (317, lambda text: {"metadata": {"labels": {"a": "b", text: ""}}}),
    "metadata.labels[...]": (63, lambda text: {"metadata": {"labels": {"a": "b", "c": text}}}),
    "metadata.ownerReferences[1].kind": (253, lambda text: {"metadata": {"ownerReferences": [{}, {"kind": text}]}}),
    "metadata.ownerReferences[1].name": (253, lambda text: {"metadata": {"ownerReferences": [{}, {"name": text}]}}),
    "metadata.ownerReferences[1].uid": (64, lambda text: {"metadata": {"ownerReferences": [{}, {"uid": text}]}}),
    "spec.nodeName": (253, lambda text: {"spec": {"nodeName": text}}),
    "key in spec.nodeSelector": (317, lambda text: {"spec": {"nodeSelector": {"a": "b", text: ""}}}),
    "spec.nodeSelector[...]": (63, lambda text: {"spec": {"nodeSelector": {"a": "b", "c": text}}}),
    "spec.volumes[1].name": (253, lambda text: {"spec": {"volumes": [{}, {"name": text}]}}),
    "spec.volumes[1].persistentVolumeClaim.claimName": (
        253,
        lambda text: {"spec": {"volumes": [{}, builders.claim_volume("disk", text)]}},
    ),
}
LONG: Final = "x" * 690_000


@pytest.mark.parametrize(("what", "most", "pod"), [(what, *row) for what, row in TEXTS.items()], ids=TEXTS)
def test_a_text_may_be_as_long_as_its_limit_and_no_longer(what: str, most: int, pod: Callable[[str], Object]) -> None:
    """Nothing else in the pod is too long."""

    def why(length: int) -> Why:
        body = review({"metadata": {}, "spec": {}, **pod("x" * length)})
        answer = admit(body, cluster(), Policy())
        assert isinstance(answer, Answer)
        return answer.decision.why

    assert Reason.TEXT_TOO_LONG not in (why(0).reason, why(most).reason)
    sentence = f"{what} of the pod has more than {most} characters; the webhook evaluates no such pod"
    assert str(why(most + 1)) == f"TextTooLong: {sentence}"


@pytest.mark.parametrize("pod", [pod for _, pod in TEXTS.values()], ids=TEXTS)
@pytest.mark.parametrize("entry", Entry, ids=lambda entry: entry.title)
def test_nothing_of_a_long_text_is_stored_or_repeated(entry: Entry, pod: Callable[[str], Object]) -> None:
    """Neither in the answer nor in what the log and the page get of it."""
    answer = admit(review({"metadata": {}, "spec": {}, **pod(LONG)}), cluster(), Policy(), entry)
    assert isinstance(answer, Answer)
    assert (answer.decision.why.reason, answer.pod, answer.operations) == (Reason.TEXT_TOO_LONG, None, [])
    assert len(answer.body) < 500
    assert len(encode(admission_record(answer, 0))) < 500


def review(pod: Object, **request: Any) -> bytes:
    """A review of a pod."""
    return json.dumps(builders.review(pod, **request)).encode()


LONG_POD = builders.vm_pod("db01")
LONG_POD["metadata"]["annotations"] = {"x": "y" * WHOLE_BYTES_MAX}
TOO_LARGE = {
    "a list": review(pod("tolerations", 65)),
    "its annotations": review(LONG_POD),
    "another part of the review": review(builders.vm_pod("a"), options=LONG_POD),
}


@pytest.mark.parametrize("body", TOO_LARGE.values(), ids=TOO_LARGE)
@pytest.mark.parametrize("entry", Entry, ids=lambda entry: entry.title)
def test_a_pod_that_is_too_large_is_admitted_unchanged(entry: Entry, body: bytes) -> None:
    """By its lists, and by the length of its review."""
    answer = admit(body, cluster(), Policy(), entry)
    assert isinstance(answer, Answer)
    assert isinstance(answer.decision, Leave)
    assert (answer.decision.why.reason, answer.operations) == (Reason.POD_TOO_LARGE, [])
    assert json.loads(answer.body)["response"]["allowed"] is True


@pytest.mark.parametrize("part", ["podAntiAffinity", "unknownField"])
def test_an_affinity_may_have_64_kib_and_no_more(part: str) -> None:
    """All of it is decoded and copied, also what is neither required nor known."""

    def why(length: int) -> Why:
        affinity: Object = {part: {PREFERRED: [{"weight": 1, "x": ""}]}}
        affinity[part][PREFERRED][0]["x"] = "x" * (length - len(encode(affinity)))
        made = builders.vm_pod("db01", affinity=affinity, containers=[{"name": "main"}])
        answer = admit(encode(builders.review(made)), cluster(), Policy())
        assert isinstance(answer, Answer)
        return answer.decision.why

    assert why(PART_BYTES_MAX).reason is Reason.OWNER_NOT_FOUND
    sentence = "the pod has 65537 bytes in spec.affinity; the webhook evaluates a pod with at most 65536"
    assert str(why(PART_BYTES_MAX + 1)) == f"PodTooLarge: {sentence}"


@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", rb"\ud800"])
@pytest.mark.parametrize("nth", range(5))
def test_a_name_without_utf_8_is_a_bad_review_in_a_long_pod_too(nth: int, bad: bytes) -> None:
    """At each place that is read field by field. No decoder looked at these names before."""
    containers = [{"BAD": 1}, {"env": "x" * PART_BYTES_MAX}]
    affinity = {"podAntiAffinity": {"BAD": 1}, "BAD": 1}
    pod = {"metadata": {"BAD": 1}, "spec": {"containers": containers, "affinity": affinity, "BAD": 1}}
    parts = review(pod).split(b"BAD")
    body = b"ok".join(parts[: nth + 1]) + bad + b"ok".join(parts[nth + 1 :])
    with pytest.raises(BadReview, match="the body is not an AdmissionReview"):
        admit(body, cluster(), Policy())


def test_a_failure_of_ours_stores_no_long_text_either() -> None:
    """It is answered by the same limits."""
    answer = failed(review({"metadata": {"name": LONG}, "spec": {}}), Reason.INTERNAL_ERROR.why(problem="x"))
    assert (answer.decision.why.reason, answer.pod) == (Reason.TEXT_TOO_LONG, None)
