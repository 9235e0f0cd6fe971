"""What one replica may give away of a node: pods that no replica may pin, and VMs that start together."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec import convert
from support.models.one_node import OneNodeSnapshot
from support.models.one_node_pods import APART, PORTS, asking, coming, cycle, taking, there, verdict
from support.objects import builders_pods

from webhook.core.api.pod import Pod
from webhook.core.placement.replica_share import count_replicas, own_namespace_of, why_not_shared
from webhook.core.reasons import Reason
from webhook.core.scheduler.state.snapshot import AnySnapshot, SnapshotUnavailable


@pytest.mark.parametrize(
    ("snapshot", "pod", "told"),
    [
        pytest.param(there(replicas=2), asking(), None, id="nothing"),
        pytest.param(there(replicas=2), asking(ports=PORTS), "host port", id="a host port"),
        pytest.param(there(replicas=2), asking(affinity=APART), "required anti-affinity", id="anti-affinity"),
        pytest.param(there(), asking(ports=PORTS), None, id="one replica sees all of it"),
        pytest.param(SnapshotUnavailable("not listed"), asking(ports=PORTS), None, id="pods are not known"),
    ],
)
def test_what_no_replica_has_a_share_of(snapshot: AnySnapshot, pod: Pod, told: str | None) -> None:
    """Two replicas could both pin such a pod to one node at the same moment, and one of the pods would be stranded."""
    why = why_not_shared(cycle(snapshot, pod))
    assert (why is None) if told is None else (why is not None and told in why.sentence)


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


def after_several_vms(*, settled: bool) -> OneNodeSnapshot:
    """Two VMs started together and were bound elsewhere; `settled`: they are still queued, and all replicas know."""
    made = there()
    vms = [made.scheduler_cache.add(coming(400, is_vm=True)) for _ in range(2)]
    if settled:
        made.scheduler_cache.confirm(made.scheduler_cache.add(coming(1, is_vm=True, assumed=True)))
        return made
    made.scheduler_cache.add(taking(1))
    for vm in vms:
        made.scheduler_cache.remove(vm)
    return made


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        pytest.param(
            after_several_vms(settled=False), (Reason.REPLICAS_BEHIND, True), id="its end may not be known to all"
        ),
        pytest.param(after_several_vms(settled=True), (Reason.NO_ROOM, True), id="all know of it"),
    ],
)
def test_while_vms_start_together_a_vm_is_steered_and_not_pinned(
    snapshot: OneNodeSnapshot, expected: tuple[Reason, bool]
) -> None:
    """kube-scheduler decides which of the VMs get the node, however many prefer it."""
    found = verdict(snapshot)
    assert (found.why.reason, found.preferable) == expected
    assert found.fits is (expected[0] is Reason.REPLICAS_BEHIND)
