"""A node that is feasible by itself is evaluated beside its other pods."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec import convert
from support.models.one_node import APART, DB, OneNodeSnapshot, asking, coming, taking, there, verdict
from support.objects import builders_pods
from support.objects.builders import virt_launcher_pod

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.pod import Pod
from webhook.core.placement.replica_share import count_replicas, own_namespace_of
from webhook.core.reasons import Reason
from webhook.core.scheduler import cycle_state
from webhook.core.scheduler.pod_info import anti_affinity

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LAUNCHERS = {"labelSelector": {"matchLabels": {"kubevirt.io": "virt-launcher"}}, "topologyKey": "zone"}
REPELS = anti_affinity([convert({**LAUNCHERS, "topologyKey": DB["topologyKey"]}, PodAffinityTerm)], "vms")


def apart(*terms: object) -> dict[str, object]:
    """Required anti-affinity of the pod under admission."""
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def pinned(*, queued: bool = True, **labels: str) -> OneNodeSnapshot:
    """A pinned VM is not bound yet, and there is enough for another pod."""
    return there(taking(1, bound=False, pinned=True, queued=queued, labels=labels))


VERDICTS: dict[str, tuple[OneNodeSnapshot, Pod, tuple[Reason, bool]]] = {
    "full, and a VM that may go nowhere else waits": (
        there(taking(501), taking(1000, bound=False, pinned=True)),
        asking(),
        (Reason.NODE_MAY_FILL_UP, False),
    ),
    "partly of one that comes": (there(taking(400), coming(101)), asking(), (Reason.NODE_MAY_FILL_UP, False)),
    "room for each of two replicas": (there(replicas=2), asking("500m"), (Reason.NODE_FEASIBLE, True)),
    "room for one of two replicas": (there(replicas=2), asking("501m"), (Reason.REPLICA_SHARE_FULL, True)),
    "room for one of two replicas, and one comes": (
        there(coming(1), replicas=2),
        asking("500m"),
        (Reason.NODE_MAY_FILL_UP, False),
    ),
    "room for one of two replicas, and one waits for this node alone": (
        there(taking(1, bound=False, pinned=True), replicas=2),
        asking("500m"),
        (Reason.NODE_MAY_FILL_UP, False),
    ),
    "room for each of three replicas": (there(replicas=3), asking("333m"), (Reason.NODE_FEASIBLE, True)),
    "room for two of three replicas": (there(replicas=3), asking("334m"), (Reason.REPLICA_SHARE_FULL, True)),
    "pods for two of three replicas": (there(taking(0), replicas=3), asking("1m"), (Reason.REPLICA_SHARE_FULL, True)),
    "its own share is taken by one that comes": (
        there(coming(200), replicas=2, has={"pods": 9, "cpu": 1000}),
        asking("301m"),
        (Reason.NODE_MAY_FILL_UP, False),
    ),
    "its own share holds both": (
        there(coming(200), replicas=2, has={"pods": 9, "cpu": 1000}),
        asking("300m"),
        (Reason.PODS_ON_THE_WAY, True),
    ),
    "or its second term avoids it": (
        pinned(app="db"),
        asking(affinity=apart(LAUNCHERS, DB)),
        (Reason.PINNED_VM_WAITS, False),
    ),
    "or perhaps avoids it: a label of the namespace decides": (
        pinned(app="db"),
        asking(affinity=apart({**DB, "namespaceSelector": {"matchLabels": {"team": "a"}}})),
        (Reason.PINNED_VM_WAITS, False),
    ),
    "it avoids pods of another namespace": (
        pinned(app="db"),
        asking(affinity=apart({**DB, "namespaces": ["others"]})),
        (Reason.PODS_ON_THE_WAY, True),
    ),
    "or perhaps avoids it: its terms do not parse": (
        pinned(app="db"),
        asking(affinity=apart({**DB, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}})),
        (Reason.PINNED_VM_WAITS, False),
    ),
    "one that may go nowhere else, and that kube-scheduler has tried": (
        pinned(queued=False),
        asking(),
        (Reason.NODE_FEASIBLE, True),
    ),
    "one that kube-scheduler has tried, and that it avoids": (
        pinned(queued=False, app="db"),
        asking(affinity=APART),
        (Reason.PINNED_VM_WAITS, False),
    ),
    "one that avoids it, and can be bound first": (
        there(coming(1, anti_affinity=REPELS)),
        asking(),
        (Reason.EXCLUDED_BY_POD, True),
    ),
    "a node that was not listed": (there(nodes={}), asking(), (Reason.FREE_RESOURCES_UNKNOWN, True)),
}


@pytest.mark.parametrize(("snapshot", "pod", "expected"), VERDICTS.values(), ids=VERDICTS)
def test_what_the_others_have_left(snapshot: OneNodeSnapshot, pod: Pod, expected: tuple[Reason, bool]) -> None:
    """Each rule refuses for its reason; what could be the place of a pod that is pinned there is not even preferred."""
    found = verdict(snapshot, pod)
    assert (found.why.reason, found.preferable) == expected


def test_the_node_s_own_rules_come_first() -> None:
    """They need no other pod. Yet a pod that is pinned there keeps its place."""
    for snapshot, preferable in ((there(taking(501)), True), (there(coming(501)), False)):
        found = verdict(snapshot, asking(nodeSelector={"disk": "nvme"}))
        assert (found.why.reason, found.preferable) == (Reason.NODE_SELECTOR_MISMATCH, preferable)


def pod(**spec: Any) -> Pod:
    """A launcher pod with fields of its spec."""
    return convert(virt_launcher_pod(**spec), Pod)


def test_more_terms_than_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them could exclude the pod. The node is preferred."""
    monkeypatch.setattr(cycle_state, "TERMS_MAX", 0)
    found = verdict(there(taking(1, anti_affinity=REPELS)))
    assert (found.why.reason, found.preferable) == (Reason.TOO_MANY_EXISTING_TERMS, True)


LABELS: Final = {"app.kubernetes.io/name": "kubevirt-coschedule", "app.kubernetes.io/component": "webhook"}


@pytest.mark.parametrize(
    ("changed", "counted"),
    [
        pytest.param({}, 2, id="ours"),
        pytest.param({"namespace": "tenant"}, 1, id="of another namespace"),
        pytest.param({"labels": {"app.kubernetes.io/name": "x"}}, 1, id="of other labels"),
        pytest.param({"node": None}, 1, id="on no node yet"),
        pytest.param({"phase": "Failed"}, 1, id="over"),
    ],
)
def test_replicas_are_the_webhooks_own_pods(changed: dict[str, Any], counted: int) -> None:
    """As `serve` counts them: the Service leads to no other pods. A stranger's pod can have the same labels."""
    own = {"namespace": "kubevirt-coschedule", "node": "n1", "labels": LABELS}
    pods = [convert(builders_pods.pod(name, **{**own, **parts}), Pod) for name, parts in (("a", {}), ("b", changed))]
    assert count_replicas(pods, "kubevirt-coschedule") == counted


@pytest.mark.parametrize(
    ("configuration", "namespace"),
    [
        ({"webhooks": [{"clientConfig": {"service": {"namespace": "platform"}}}]}, "platform"),
        ({"webhooks": [{"clientConfig": {"url": "https://example.com"}}]}, "kubevirt-coschedule"),
        ({"webhooks": [{"clientConfig": {"service": {"namespace": None}}}]}, "kubevirt-coschedule"),
        ({"webhooks": []}, "kubevirt-coschedule"),
        ({"webhooks": "x"}, "kubevirt-coschedule"),
        ({"webhooks": None}, "kubevirt-coschedule"),
        ({}, "kubevirt-coschedule"),
    ],
    ids=str,
)
def test_the_configuration_names_the_namespace(configuration: dict[str, Any], namespace: str) -> None:
    """Kustomize's `namespace:` moves the Service, and with it the pods."""
    assert own_namespace_of(configuration) == namespace
