"""The four VMs of `one_story` in short: the state of each, and its state by a list of objects."""

from __future__ import annotations

from typing import Final, NamedTuple

from support.control_plane.kube_api import Object
from support.scenarios.one_story import HOME, VMS, Story

from webhook.core.observe.vm_status import State

STATES: Final = {"apart": "apart", "cold": "together", "pinned": "stuck", "together": "together"}
DECIDED: Final = {"apart": "migrated", "cold": "unchanged", "pinned": "required", "together": "required"}
COUNTS: Final = {**dict.fromkeys(State, 0), "together": 2, "apart": 1, "stuck": 1}


class Told(NamedTuple):
    """One VM, as an output tells of it."""

    state: str
    node: str | None
    share_manager: str | None
    reason: str
    decided: str


def expected(story: Story) -> dict[str, Told]:
    """VM -> what has become of it: where the scheduler has bound its pod, and where its share-manager is."""
    homes = {**HOME, "cold": story.nodes["cold"]}
    reasons = {**dict.fromkeys(VMS, "ShareManagerPod"), "apart": "VmLiveMigrated", "pinned": "VmStuck"}
    return {vm: Told(STATES[vm], story.nodes[vm], homes[vm], reasons[vm], DECIDED[vm]) for vm in VMS}


def of_rows(rows: list[Object]) -> dict[str, Told]:
    """VM -> what a list of objects says."""
    return {
        row["name"]: Told(row["state"], row["node"], row["volumes"][0]["node"], row["reason"], row["decided"])
        for row in rows
    }
