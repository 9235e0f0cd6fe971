"""DynamicResources: only some nodes may have the devices that a pod claims."""

from __future__ import annotations

from typing import Any

import pytest
from support.models.plugin_input import cycle_of

from webhook.core.reasons import Reason
from webhook.core.scheduler.plugins import dynamic_resources
from webhook.core.scheduler.status import PASSED, Status, Unknown


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        pytest.param(None, PASSED, id="null"),
        pytest.param([], PASSED, id="none"),
        pytest.param([{"name": "gpu"}], Unknown(Reason.RESOURCE_CLAIMS, {}), id="one"),
    ],
)
def test_a_pod_that_claims_devices_is_not_decided(claims: list[Any] | None, expected: Status) -> None:
    """The webhook reads no ResourceSlice."""
    assert dynamic_resources.pre_filter(cycle_of(resourceClaims=claims)) == expected
