"""What bound volumes have against a node: VolumeBinding, NodeVolumeLimits."""

from __future__ import annotations

from typing import Final

import pytest
from support.models.one_node import NO_SPEC, node_of, volume_of
from support.objects import builders

from webhook.core.reasons import Reason
from webhook.core.scheduler.node_rules import ClaimVolume, why_unusable

LONGHORN: Final = builders.LONGHORN_DRIVER


def only(*zones: str) -> ClaimVolume:
    """A volume that can be used in these zones by its node affinity."""
    return volume_of(terms=[{"matchExpressions": [{"key": "zone", "operator": "In", "values": list(zones)}]}])


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
        pytest.param([volume_of(), volume_of()], Reason.VOLUME_COUNT_UNKNOWN, id="nothing worse"),
    ],
)
def test_what_rejects_comes_before_what_is_not_known(volumes: list[ClaimVolume], reason: Reason | None) -> None:
    """Of all volumes; the node has a limit for each of them."""
    node = node_of(builders.node("n1", labels={"zone": "a"}), csi_drivers={LONGHORN: 16})
    why = why_unusable(volumes, node)
    assert (why and why.reason) is reason
