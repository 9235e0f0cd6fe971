"""The plan as YAML with comments, for `kubectl create -f -`, and its summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webhook.core.observe.vm_status import State
from webhook.plan.step import Step
from webhook.terminal import to_yaml

_NODE_SELECTOR: Final = (
    "# A VM keeps the node selector of its migration until its next migration or start. Until then a descheduler with\n"
    "# nodeFit does not evict the VM.\n"
)


def render_plan(steps: Sequence[Step], origin: str, version: str) -> str:
    """Return the plan as YAML. `origin`: the cluster in words and the time of the rows; `version`: of KubeVirt."""
    needs = f"this is {version}" if version else "its version could not be read"
    parts = [f"# {origin}. Migrations need KubeVirt 1.5 or newer; {needs}.\n"]
    if any(step.migration for step in steps):
        parts.append(_NODE_SELECTOR)
    for step in steps:
        boundary = "---\n" if step.migration else "\n"
        comments = "".join(f"{line}\n" for line in step.lines())
        parts.append(boundary + comments + (to_yaml(step.migration) if step.migration else ""))
    return "".join(parts)


def plan_summary(steps: Sequence[Step]) -> str:
    """Return how many VMs are apart, how many are stuck, and how many of them a migration brings together."""
    if not steps:
        return "nothing to do: no VM is apart or stuck"
    migrations = sum(step.migration is not None for step in steps)
    stuck = sum(step.row.state is State.STUCK for step in steps)
    apart = len(steps) - stuck
    return f"{apart} apart, {stuck} stuck; {migrations} can be brought together by the live migrations above"
