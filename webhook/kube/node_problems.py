"""Why no VM can start on the nodes of some VMs, from the caches."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from webhook.core.observe.node_problem import nodes_of, why_no_vm_starts
from webhook.core.observe.vm_status import VMStatus
from webhook.kube.cache.cached_view import CachedView
from webhook.kube.slices import COUNT_EVERY, Slices


async def node_problems(rows: Sequence[VMStatus], view: CachedView, slices: Slices) -> Mapping[str, str] | None:
    """Return why no VM can start on a node, by its name, for nodes with a problem; None if nodes are out of date."""
    if not view.knows_nodes(asyncio.get_running_loop().time()):
        return None
    problems: dict[str, str] = {}
    for number, row in enumerate(rows):
        if number % COUNT_EVERY == 0:
            await slices.step()
        for name in nodes_of(row):
            if name not in problems:
                why = why_no_vm_starts(name, view)
                problems[name] = why.sentence if why else ""
    return {name: problem for name, problem in problems.items() if problem}
