"""NodeUnschedulable: a cordoned node."""

from __future__ import annotations

from typing import Any

import pytest
from support.models.plugin_input import cycle_of, node_of
from support.objects import builders

from webhook.core.reasons import Reason
from webhook.core.scheduler.plugins import node_unschedulable
from webhook.core.scheduler.status import PASSED, Rejected

NODE = builders.node("n1")
CORDONED = Rejected(Reason.NODE_CORDONED, {"node": "n1"})


@pytest.mark.parametrize("spec", [None, {}, {"unschedulable": None}, {"unschedulable": False}])
def test_a_node_that_is_not_cordoned_passes(spec: Any) -> None:
    """Also if it says nothing about that."""
    assert node_unschedulable.filter_node(cycle_of(), node_of({**NODE, "spec": spec})) is PASSED


@pytest.mark.parametrize("tolerations", [[], [{"operator": "Exists"}]], ids=["none", "of every taint"])
def test_a_cordoned_node_is_rejected_whatever_the_pod_tolerates(tolerations: list[Any]) -> None:
    """Upstream accepts it for a pod that tolerates the taint of the cordon; the webhook steers no VM there."""
    node = node_of({**NODE, "spec": {"unschedulable": True}})
    assert node_unschedulable.filter_node(cycle_of(tolerations=tolerations), node) == CORDONED
