"""VolumeZone: the zone and region labels of a bound PersistentVolume, beside those of the node."""

from __future__ import annotations

import pytest
from support.models.plugin_input import node_of, volume_of
from support.objects import builders

from webhook.core.reasons import Reason
from webhook.core.scheduler.plugins import volume_zone
from webhook.core.scheduler.status import PASSED, Rejected, Status

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, OLD_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
ELSEWHERE = Rejected(Reason.VOLUME_ZONE_MISMATCH, {"node": "n1", "volume": "pv", "claim": "disk"})


@pytest.mark.parametrize(
    ("volume", "node", "expected"),
    [
        pytest.param({}, {ZONE: "a"}, PASSED, id="a volume without labels"),
        pytest.param({"team": "x"}, {ZONE: "a"}, PASSED, id="a label of something else"),
        pytest.param({ZONE: "a"}, {ZONE: "a"}, PASSED, id="its zone"),
        pytest.param({ZONE: "b"}, {ZONE: "a"}, ELSEWHERE, id="another zone"),
        pytest.param({REGION: "b"}, {REGION: "a"}, ELSEWHERE, id="another region"),
        pytest.param({ZONE: "a", REGION: "b"}, {ZONE: "a", REGION: "a"}, ELSEWHERE, id="its zone, another region"),
        pytest.param({ZONE: "b__a"}, {ZONE: "a"}, PASSED, id="one of several zones"),
        pytest.param({ZONE: "b__c"}, {ZONE: "a"}, ELSEWHERE, id="none of several zones"),
        pytest.param({ZONE: "b__"}, {ZONE: "a"}, PASSED, id="a value that does not split into names"),
        pytest.param({OLD_ZONE: "b"}, {ZONE: "a"}, ELSEWHERE, id="a deprecated zone label"),
        pytest.param({OLD_REGION: "a"}, {REGION: "a"}, PASSED, id="a deprecated region label"),
        pytest.param({OLD_ZONE: "b"}, {OLD_ZONE: "b", ZONE: "a"}, PASSED, id="the node's deprecated label comes first"),
        pytest.param(
            {ZONE: "b"}, {OLD_ZONE: "b"}, ELSEWHERE, id="the node's deprecated label does not replace the new"
        ),
        pytest.param({ZONE: "a"}, {REGION: "a"}, ELSEWHERE, id="a node with a region and no zone"),
        pytest.param({ZONE: "a"}, {"rack": "1"}, PASSED, id="a node without a zone or region"),
    ],
)
def test_a_node_is_in_the_zone_and_region_of_the_volume(
    volume: dict[str, str], node: dict[str, str], expected: Status
) -> None:
    """The reason names volume and claim."""
    found = volume_zone.filter_volume(volume_of(labels=volume), node_of(builders.node("n1", labels=node)))
    assert found == expected
