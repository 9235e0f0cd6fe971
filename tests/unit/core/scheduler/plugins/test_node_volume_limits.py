"""NodeVolumeLimits: how many volumes are attached is not known, so that a limit is not decided."""

from __future__ import annotations

import pytest
from msgspec import convert
from support.models.plugin_input import node_of, volume_of
from support.objects import builders

from webhook.core.api.storage import PersistentVolume
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import ClaimVolume
from webhook.core.scheduler.plugins import node_volume_limits

LONGHORN = builders.LONGHORN_DRIVER
VOLUME = volume_of()
NAMES = {"node": "n1", "driver": LONGHORN, "claim": "disk"}


@pytest.mark.parametrize(
    ("bound", "limits", "expected"),
    [
        pytest.param(VOLUME, {}, None, id="no limits"),
        pytest.param(VOLUME, {"other.example.com": 1}, None, id="of another driver"),
        pytest.param(VOLUME, {LONGHORN: 16}, Reason.VOLUME_COUNT_UNKNOWN.why(**NAMES, limit=16), id="of its own"),
        pytest.param(VOLUME, {LONGHORN: 0}, Reason.VOLUME_COUNT_UNKNOWN.why(**NAMES, limit=0), id="of zero"),
        pytest.param(volume_of(driver="other.example.com"), {LONGHORN: 1}, None, id="a volume of another driver"),
        pytest.param(volume_of(driver=None), {"": 1, LONGHORN: 1}, None, id="a volume without a driver"),
        pytest.param(
            ClaimVolume("disk", convert({"metadata": {}}, PersistentVolume)), {LONGHORN: 1}, None, id="no spec"
        ),
    ],
)
def test_only_a_limit_of_the_volumes_own_driver_counts(
    bound: ClaimVolume, limits: dict[str, int], expected: Why | None
) -> None:
    """The reason names driver and limit."""
    node = node_of(builders.node("n1"), csi_drivers=limits)
    assert node_volume_limits.filter_volume(bound, node) == expected
