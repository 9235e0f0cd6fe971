from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from webhook.core.api.node import CSINodeSpec, csi_drivers_of

LONGHORN, CEPH = "driver.longhorn.io", "rbd.csi.ceph.com"


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param(None, {}, id="no CSINode"),
        pytest.param({}, {}, id="no drivers"),
        pytest.param({"drivers": None}, {}, id="null drivers"),
        pytest.param(
            {"drivers": [{"name": LONGHORN}, {"name": CEPH, "allocatable": {}}]},
            {LONGHORN: None, CEPH: None},
            id="no limits",
        ),
        pytest.param(
            {
                "drivers": [
                    {"name": LONGHORN, "allocatable": {"count": 0}},
                    {"name": CEPH, "allocatable": {"count": 24}},
                ]
            },
            {LONGHORN: 0, CEPH: 24},
            id="limits, and zero is one",
        ),
        pytest.param({"drivers": [{"allocatable": {"count": 1}}]}, {}, id="of no driver"),
    ],
)
def test_a_csinode_tells_drivers_and_limits(spec: dict[str, Any] | None, found: dict[str, int | None]) -> None:
    """A driver without a limit is one."""
    assert csi_drivers_of(convert(spec, CSINodeSpec | None)) == found
