"""VolumeBinding: the node affinity of a bound PersistentVolume."""

from __future__ import annotations

import pytest
from msgspec import convert
from support.models.plugin_input import node_of, volume_of
from support.objects import builders

from webhook.core.api.storage import PersistentVolume
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import ClaimVolume
from webhook.core.scheduler.plugins import volume_binding

NODE = node_of(builders.node("n1", labels={"zone": "a"}))
ZONE_A = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}


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
    expected = Why(Reason.IN_TREE_VOLUME, names) if unknown else None
    assert volume_binding.filter_volume(bound, NODE) == expected


def test_a_volume_without_a_spec_passes() -> None:
    """On every node."""
    bound = ClaimVolume("disk", convert({"metadata": {}}, PersistentVolume))
    assert volume_binding.filter_volume(bound, NODE) is None
