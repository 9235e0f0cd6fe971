"""SchedulingGates: kube-scheduler ignores a pod that has a gate."""

from __future__ import annotations

from typing import Any

import pytest
from support.models.plugin_input import cycle_of

from webhook.core.reasons import Reason
from webhook.core.scheduler.plugins import scheduling_gates
from webhook.core.scheduler.status import PASSED, Rejected, Status


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        pytest.param(None, PASSED, id="null"),
        pytest.param([], PASSED, id="none"),
        pytest.param([{"name": "quota"}], Rejected(Reason.SCHEDULING_GATED, {"gate": "quota"}), id="one"),
        pytest.param([{"name": "a"}, {"name": "b"}], Rejected(Reason.SCHEDULING_GATED, {"gate": "a"}), id="two"),
    ],
)
def test_a_pod_with_a_gate_is_rejected(gates: list[Any] | None, expected: Status) -> None:
    """The reason names the first gate."""
    assert scheduling_gates.pre_enqueue(cycle_of(schedulingGates=gates)) == expected
