"""How many replicas share a node: they are the pods of the webhook's own Deployment."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec import convert
from support.objects import builders_pods

from webhook.core.api.pod import Pod
from webhook.core.placement.replica_share import count_replicas, own_namespace_of

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
