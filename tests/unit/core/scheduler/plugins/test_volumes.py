"""What bound volumes have against a node: VolumeBinding, VolumeZone, NodeVolumeLimits."""

from __future__ import annotations

from typing import Final

import pytest
from support.models.plugin_input import NO_SPEC, node_of, volume_of
from support.objects import builders

from webhook.core.reasons import Reason
from webhook.core.scheduler.plugins.volumes import ClaimVolume, why_unusable

LONGHORN: Final = builders.LONGHORN_DRIVER
ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
NAMES: Final = {"volume": "pv", "claim": "disk", "node": "n1"}


def only(*zones: str) -> ClaimVolume:
    """A volume that can be used in these zones by its node affinity."""
    return volume_of(terms=[{"matchExpressions": [{"key": "zone", "operator": "In", "values": list(zones)}]}])


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        pytest.param(only("a", "b"), None, id="of the node's zone"),
        pytest.param(only("b"), Reason.VOLUME_AFFINITY_MISMATCH, id="of another zone"),
        pytest.param(volume_of(terms=[]), Reason.VOLUME_AFFINITY_MISMATCH, id="of no term"),
        pytest.param(volume_of(), None, id="of every node"),
        pytest.param(NO_SPEC, None, id="that tells nothing"),
    ],
)
def test_the_node_affinity_of_a_volume(bound: ClaimVolume, reason: Reason | None) -> None:
    """A volume that the node can't use rejects the node."""
    why = why_unusable([bound], node_of(builders.node("n1", labels={"zone": "a"})))
    assert why == (reason and reason.why(**NAMES))


@pytest.mark.parametrize(
    ("volume", "node", "elsewhere"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, False, id="the same zone"),
        pytest.param({ZONE: "b"}, {ZONE: "a"}, True, id="another zone"),
        pytest.param({ZONE: "b__ a"}, {ZONE: "a"}, False, id="one of several zones"),
        pytest.param({ZONE: "b__c"}, {ZONE: "a"}, True, id="none of several zones"),
        pytest.param({ZONE: "b__"}, {ZONE: "a"}, False, id="a value that does not split into names"),
        pytest.param({ZONE: "a"}, {}, False, id="a node without topology labels"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, True, id="a node with another topology label"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "a"}, False, id="the old label, and a node with the new one"),
        pytest.param({BETA_ZONE: "b"}, {ZONE: "a"}, True, id="the old label, elsewhere by the new one"),
        pytest.param({BETA_ZONE: "b"}, {BETA_ZONE: "b", ZONE: "a"}, False, id="the old label, which both have"),
        pytest.param({ZONE: "a", REGION: "s"}, {ZONE: "a", REGION: "r"}, True, id="another region"),
        pytest.param({"zone": "b"}, {ZONE: "a", "zone": "a"}, False, id="a label of somebody else"),
    ],
)
def test_the_zone_labels_of_a_volume(volume: dict[str, str], node: dict[str, str], *, elsewhere: bool) -> None:
    """Each zone or region that a volume is labelled for must be the node's."""
    why = why_unusable([volume_of(labels=volume)], node_of(builders.node("n1", labels=node)))
    assert why == (Reason.VOLUME_ZONE_MISMATCH.why(**NAMES) if elsewhere else None)


@pytest.mark.parametrize(
    ("bound", "limits", "limit"),
    [
        pytest.param(volume_of(), None, None, id="no CSINode"),
        pytest.param(volume_of(), {LONGHORN: None}, None, id="no limits"),
        pytest.param(volume_of(), {"other.example.com": 1}, None, id="of another driver"),
        pytest.param(volume_of(), {LONGHORN: 16}, 16, id="of its own"),
        pytest.param(volume_of(), {LONGHORN: 0}, 0, id="of zero"),
        pytest.param(volume_of(driver="other.example.com"), {LONGHORN: 1}, None, id="a volume of another driver"),
        pytest.param(volume_of(driver=None), {"": 1, LONGHORN: 1}, None, id="a volume without a driver"),
        pytest.param(NO_SPEC, {LONGHORN: 1}, None, id="no spec"),
    ],
)
def test_only_a_limit_of_the_volumes_own_driver_counts(
    bound: ClaimVolume, limits: dict[str, int | None] | None, limit: int | None
) -> None:
    """How many volumes are attached is not known. The reason names driver and limit."""
    why = why_unusable([bound], node_of(builders.node("n1"), csi_drivers=limits))
    expected = Reason.VOLUME_COUNT_UNKNOWN.why(node="n1", driver=LONGHORN, claim="disk", limit=limit)
    assert why == (None if limit is None else expected)


@pytest.mark.parametrize(
    ("volumes", "reason"),
    [
        pytest.param([], None, id="none"),
        pytest.param([only("a"), only("b")], Reason.VOLUME_AFFINITY_MISMATCH, id="the second one"),
        pytest.param([volume_of(), volume_of(labels={ZONE: "b"})], Reason.VOLUME_ZONE_MISMATCH, id="a zone, too"),
        pytest.param([volume_of(), volume_of()], Reason.VOLUME_COUNT_UNKNOWN, id="nothing worse"),
    ],
)
def test_what_rejects_comes_before_what_is_not_known(volumes: list[ClaimVolume], reason: Reason | None) -> None:
    """Of all volumes; the node has a limit for each of them."""
    node = node_of(builders.node("n1", labels={"zone": "a", ZONE: "a"}), csi_drivers={LONGHORN: 16})
    why = why_unusable(volumes, node)
    assert (why and why.reason) is reason
