"""What KubeVirt itself writes into a virt-launcher pod."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert
from support.objects import builders

from webhook.core.api.affinity import REQUIRED
from webhook.core.api.kubevirt import without_target_rule
from webhook.core.api.pod import Pod

KUBEVIRTS = {
    "labelSelector": {"matchLabels": {"kubevirt.io/created-by": builders.OWNER_UID}},
    "topologyKey": "kubernetes.io/hostname",
}
USERS = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
WIDER = {**KUBEVIRTS, "topologyKey": "topology.kubernetes.io/zone"}


def target(affinity: Any) -> Pod:
    """The target pod of a live migration."""
    return convert(builders.virt_launcher_pod(affinity=affinity), Pod)


def apart(*terms: Any) -> Any:
    """A required anti-affinity."""
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


@pytest.mark.parametrize(
    ("terms", "left"),
    [
        pytest.param([KUBEVIRTS], None, id="KubeVirt's"),
        pytest.param([USERS, KUBEVIRTS], [USERS], id="beside a user's"),
        pytest.param([USERS, WIDER], [USERS, WIDER], id="two of a user"),
    ],
)
def test_kubevirts_rule_goes_and_a_users_stays(terms: list[Any], left: list[Any] | None) -> None:
    """KubeVirt keeps each target off the VM's node; its rule says nothing of what the user wants."""
    found = without_target_rule(target(apart(*terms))).spec.affinity
    expected = target(apart(*left) if left else apart()).spec.affinity
    assert found
    assert expected
    assert found.pod_anti_affinity
    assert (found.pod_anti_affinity.required or []) == (
        expected.pod_anti_affinity and expected.pod_anti_affinity.required
    )


@pytest.mark.parametrize("affinity", [None, {}, {"nodeAffinity": {}}], ids=str)
def test_a_pod_without_such_a_rule_stays_as_it_is(affinity: Any) -> None:
    """Nothing is there to be left out."""
    pod = target(affinity)
    assert without_target_rule(pod) is pod
