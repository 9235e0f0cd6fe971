"""What is sent, stored and logged of an admission is bounded, whatever stands in the pod and in other objects."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.views import cluster
from support.objects import builders
from support.objects.builders import (
    node,
    persistent_volume,
    persistent_volume_claim,
    review,
    share_manager,
    share_manager_pod,
    virt_launcher_pod,
    vm_pod,
)

from webhook.component_base.log_line import ENCODER
from webhook.core.admit import Answer, Entry, admit
from webhook.core.api.meta import NAME_MAX_CHARS, NAMESPACE_MAX_CHARS, UID_MAX_CHARS
from webhook.core.decision import NODES_SHOWN
from webhook.core.observe.events import events_for
from webhook.core.opt_in import Policy
from webhook.core.reasons import SENTENCE_MAX_CHARS
from webhook.telemetry.record import AdmissionRecord, admission_record

Object = dict[str, Any]
Place = Callable[[Object, str], object]
"""Puts a text into a pod, or into an object of the cluster."""

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
UTF8_MAX_BYTES: Final = 4
NODES: Final = ("n1", "n2")
ANSWER_MOST_BYTES: Final = 32 * 1024
"""With two nodes: four sentences, two of them in base64, and names. A character of a sentence is an escape at most."""


def _away(text: str) -> Object:
    selector = {"matchLabels": {text: text}, "matchExpressions": [{"key": text, "operator": "Exists"}]}
    return {"podAntiAffinity": {REQUIRED: [{"labelSelector": selector, "topologyKey": text, "namespaces": [text]}]}}


IN_POD: Final[dict[str, Place]] = {
    "name": lambda pod, text: pod["metadata"].update(name=text),
    "generateName": lambda pod, text: pod["metadata"].update(generateName=text),
    "namespace": lambda pod, text: pod["metadata"].update(namespace=text),
    "labels": lambda pod, text: pod["metadata"]["labels"].update({text: text}),
    "annotations": lambda pod, text: pod["metadata"]["annotations"].update({text: text}),
    "opt-in": lambda pod, text: pod["metadata"]["annotations"].update({builders.OPT_IN: text}),
    "our annotations": lambda pod, text: pod["metadata"]["annotations"].update(
        dict.fromkeys(builders.written("n1"), text)
    ),
    "an owner": lambda pod, text: pod["metadata"]["ownerReferences"].append({"kind": text, "name": text, "uid": text}),
    "the owner": lambda pod, text: pod["metadata"]["ownerReferences"][0].update(name=text, uid=text),
    "claim": lambda pod, text: pod["spec"]["volumes"].append(builders.claim_volume(text, text)),
    "ephemeral volume": lambda pod, text: pod["spec"]["volumes"].append(builders.ephemeral_volume(text)),
    "nodeName": lambda pod, text: pod["spec"].update(nodeName=text),
    "nodeSelector": lambda pod, text: pod["spec"].update(nodeSelector={text: text}),
    "scheduler": lambda pod, text: pod["spec"].update(schedulerName=text),
    "gate": lambda pod, text: pod["spec"].update(schedulingGates=[{"name": text}]),
    "toleration": lambda pod, text: pod["spec"].update(tolerations=[{"key": text, "value": text, "effect": text}]),
    "anti-affinity": lambda pod, text: pod["spec"].update(affinity=_away(text)),
    "spread": lambda pod, text: pod["spec"].update(topologySpreadConstraints=[{"topologyKey": text}]),
    "request": lambda pod, text: pod["spec"]["containers"][0].update(resources={"requests": {text: text}}),
    "port": lambda pod, text: pod["spec"]["containers"][0].update(ports=[{"hostPort": 1, "protocol": text}]),
}


def _node_with_taint(text: str) -> Object:
    tainted = node("n1")
    tainted["spec"]["taints"] = [{"key": text, "value": text, "effect": "NoSchedule"}]
    return tainted


def _claim_with_mode(text: str) -> Object:
    claim = persistent_volume_claim("disk", volume_name="pv")
    claim["spec"]["accessModes"] = [text, text]
    return claim


IN_CLUSTER: Final[dict[str, Callable[[str], Object]]] = {
    "nothing": lambda _: node("n2"),
    "a taint": _node_with_taint,
    "access modes": _claim_with_mode,
    "another volume": lambda text: persistent_volume_claim("disk", volume_name=text),
    "the state of a ShareManager": lambda text: share_manager("h", state=text, ownerID="n1"),
    "the node of a ShareManager": lambda text: share_manager("h", state="running", ownerID=text),
    "another pod": lambda text: {**vm_pod("other", node="n1"), "spec": {"nodeName": "n1", "affinity": _away(text)}},
    "another VM": lambda text: vm_pod("other", vm=text, claims=["disk"], node="n1", uid=text),
    "another handle": lambda text: persistent_volume("pv", claim="disk", handle=text),
}
CLUSTER: Final = [
    persistent_volume_claim("disk", volume_name="pv"),
    persistent_volume("pv", claim="disk", handle="h"),
    share_manager("h", state="running", ownerID="n1"),
    *map(node, NODES),
]
TEXTS: Final = st.builds(str.__mul__, st.text(min_size=1, max_size=3), st.sampled_from([1, 21, 64, 254, 2_000, 90_000]))


def _same(one: Object, other: Object) -> bool:
    return one["kind"] == other["kind"] and one["metadata"]["name"] == other["metadata"]["name"]


@given(
    st.lists(st.tuples(st.sampled_from(sorted(IN_POD)), TEXTS), max_size=3),
    st.sampled_from(sorted(IN_CLUSTER)),
    TEXTS,
    st.sampled_from(Entry),
)
def test_answer_log_line_annotations_and_events_are_bounded(
    texts: list[tuple[str, str]], where: str, there: str, entry: Entry
) -> None:
    """Each sentence by its number of characters, and each name by that of names."""
    of_vm = entry is Entry.VIRT_LAUNCHER
    pod = virt_launcher_pod(claims=["disk"]) if of_vm else share_manager_pod("h")
    pod["metadata"].setdefault("annotations", {})
    pod["metadata"].setdefault("ownerReferences", [{}])
    for place, text in texts:
        IN_POD[place](pod, text)
    odd = IN_CLUSTER[where](there)
    view = cluster(odd, *(each for each in CLUSTER if not _same(each, odd)))
    namespace = {} if of_vm else {"namespace": "longhorn-system"}
    answer = admit(json.dumps(review(pod, **namespace)).encode(), view, Policy(), entry)
    assert isinstance(answer, Answer)
    assert len(answer.body) <= ANSWER_MOST_BYTES
    assert_audit_is_bounded(answer.audit_annotations)
    assert_annotations_are_bounded(answer)
    assert_record_is_bounded(admission_record(answer, 0, entry=entry))
    for event in events_for(answer, entry):
        assert len(event.message.encode()) <= SENTENCE_MAX_CHARS
        assert len(event.uid) <= UID_MAX_CHARS


def assert_audit_is_bounded(audit: Any) -> None:
    """The sentence, and the nodes; decision and reason are words of ours."""
    assert len(audit["because"]) <= SENTENCE_MAX_CHARS
    assert len(audit.get("node", "")) <= len(NODES) * (NAME_MAX_CHARS + 1)


def assert_annotations_are_bounded(answer: Answer) -> None:
    """That for people is a sentence; that for programs has one, and names."""
    response = json.loads(answer.body)["response"]
    patch = json.loads(base64.b64decode(response.get("patch", "W10=")))
    values = [each["value"] for each in patch if each["path"].startswith("/metadata/annotations") and "value" in each]
    for value in values:
        for key, text in value.items() if isinstance(value, dict) else [("", value)]:
            most = SENTENCE_MAX_CHARS if key == builders.DECISION else ANSWER_MOST_BYTES // 2
            assert len(text) <= most
            if text.startswith("{"):
                assert len(json.loads(text).get("on", ())) <= NODES_SHOWN


def assert_record_is_bounded(record: AdmissionRecord) -> None:
    """What the page stores, and a line of the log."""
    assert len(record.uid) <= UID_MAX_CHARS
    assert len(record.because) <= SENTENCE_MAX_CHARS
    assert len(record.namespace or "") <= NAMESPACE_MAX_CHARS
    names = (record.pod, record.vmi, *record.nodes)
    assert all(len(name or "") <= NAME_MAX_CHARS for name in names)
    chars = SENTENCE_MAX_CHARS + len(names) * NAME_MAX_CHARS + 512
    assert len(ENCODER.encode(record)) <= UTF8_MAX_BYTES * chars + 2 * SENTENCE_MAX_CHARS


@pytest.mark.parametrize(("chars", "count"), [(64, 1), (65, 0)])
def test_a_vm_with_a_uid_that_no_object_has_gets_no_event(chars: int, count: int) -> None:
    """The owner of a pod that a watch shows can have a uid of any length."""
    pod = vm_pod("db01", claims=["disk"], node="n1", uid="u" * chars)
    body = json.dumps(review(share_manager_pod("h"), namespace="longhorn-system")).encode()
    answer = admit(body, cluster(pod, *CLUSTER), Policy(), Entry.SHARE_MANAGER)
    assert isinstance(answer, Answer)
    assert len(events_for(answer, Entry.SHARE_MANAGER)) == count
