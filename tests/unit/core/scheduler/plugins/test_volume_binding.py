"""VolumeBinding: the node affinity of a bound PersistentVolume."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert
from support.models.plugin_input import node_of, volume_of
from support.objects import builders

from webhook.core.api.storage import PersistentVolume
from webhook.core.reasons import Reason
from webhook.core.scheduler.plugins import volume_binding
from webhook.core.scheduler.state.incoming_pod import ClaimVolume
from webhook.core.scheduler.status import PASSED, Rejected, Status, Unknown

NODE = node_of(builders.node("n1", labels={"zone": "a"}))
ZONE_A = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
NOT_ZONE_A = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}
MISMATCH = Rejected(Reason.VOLUME_AFFINITY_MISMATCH, {"node": "n1", "volume": "pv", "claim": "disk"})


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param(None, PASSED, id="no node affinity"),
        pytest.param([ZONE_A], PASSED, id="met"),
        pytest.param([NOT_ZONE_A], MISMATCH, id="not met"),
        pytest.param([NOT_ZONE_A, ZONE_A], PASSED, id="one of two is enough"),
        pytest.param([{**ZONE_A, **builders.on_node("elsewhere")}], PASSED, id="kube-scheduler ignores matchFields"),
        pytest.param([{}], MISMATCH, id="an empty term"),
        pytest.param([], MISMATCH, id="no terms"),
    ],
)
def test_a_node_matches_the_node_affinity_of_the_volume(terms: list[Any] | None, expected: Status) -> None:
    """The reason names volume and claim."""
    assert volume_binding.filter_volume(volume_of(terms=terms), NODE) == expected


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("awsElasticBlockStore", True),
        ("azureDisk", True),
        ("azureFile", True),
        ("cinder", True),
        ("gcePersistentDisk", True),
        ("portworxVolume", True),
        ("vsphereVolume", True),
        ("nfs", False),
        ("rbd", False),
    ],
)
def test_a_source_that_kube_scheduler_translates_is_not_evaluated(name: str, *, unknown: bool) -> None:
    """Those of csi-translation-lib; also if the PersistentVolume has a node affinity that the node meets."""
    bound = volume_of(driver=None, source={name: {"fsType": "ext4"}}, terms=[ZONE_A])
    names = {"volume": "pv", "claim": "disk", "source": name, "node": "n1"}
    expected = Unknown(Reason.IN_TREE_VOLUME, names) if unknown else PASSED
    assert volume_binding.filter_volume(bound, NODE) == expected


def test_a_volume_without_a_spec_passes() -> None:
    """On every node."""
    bound = ClaimVolume("disk", convert({"metadata": {}}, PersistentVolume))
    assert volume_binding.filter_volume(bound, NODE) is PASSED
