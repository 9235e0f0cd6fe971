"""webhook.core.placement.feasibility asks every function of webhook.core.scheduler.registry, in that order."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from msgspec import convert
from support.models.one_node import OneNodeSnapshot, ViewWithSnapshot
from support.objects import builders

from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.placement.feasibility import evaluate, why_undecidable
from webhook.core.scheduler import registry
from webhook.core.scheduler.cycle_state import ClaimVolume, CycleState

TABLES = [table for name, table in vars(registry).items() if name.isupper()]
FUNCTIONS: dict[CodeType, str] = {
    function.__code__: f"{function.__module__}.{function.__name__}" for table in TABLES for function in table
}


def asked_of(call: Callable[[], object]) -> list[str]:
    """Return the plugin functions of the registry that the call enters, in order."""
    entered: list[str] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in FUNCTIONS:
            entered.append(FUNCTIONS[frame.f_code])

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
    return entered


def test_a_feasible_node_passes_every_plugin_in_the_order_of_the_registry() -> None:
    """The pod uses one volume, so that each function is asked once."""
    volume = ClaimVolume("disk", convert(builders.persistent_volume("pv", claim="disk"), PersistentVolume))
    snapshot = OneNodeSnapshot()
    cycle = CycleState(convert(builders.virt_launcher_pod(), Pod), "vms", snapshot, [volume])
    asked = asked_of(lambda: why_undecidable(cycle) or evaluate("n1", cycle, ViewWithSnapshot(snapshot)))
    assert asked == list(FUNCTIONS.values())
    assert len(asked) == 18
