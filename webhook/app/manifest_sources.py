"""Sources from files: the cluster that manifests describe. The page shows its VMs as the files have them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from webhook.app.background import Background
from webhook.app.settings import ServeSettings
from webhook.app.sources import Sources, policy_of
from webhook.core.api.meta import utc_text
from webhook.core.observe.node_problem import nodes_of, why_no_vm_starts
from webhook.core.observe.vm_status import VMStatus, count_states
from webhook.kube.vm_status import VMStatuses
from webhook.objects.manifests import Manifests
from webhook.objects.vm_rows import rows_from_manifests


def vm_statuses_of(cluster: Manifests, rows: Sequence[VMStatus]) -> VMStatuses:
    """Return the states of the VMs that files describe. They never change."""
    at = utc_text(time.time())
    return VMStatuses(at=at, rows=tuple(rows), counts=count_states(rows), as_of=at, nodes=_node_problems(cluster, rows))


def _node_problems(cluster: Manifests, rows: Sequence[VMStatus]) -> dict[str, str] | None:
    """Return why no VM can start on a node, by its name; None if the files describe no nodes."""
    if not cluster.node_names():
        return None
    names = sorted({name for row in rows for name in nodes_of(row)})
    problems = ((name, why_no_vm_starts(name, cluster)) for name in names)
    return {name: why.sentence for name, why in problems if why}


@asynccontextmanager
async def manifest_sources(settings: ServeSettings, background: Background) -> AsyncIterator[Sources]:
    """Read the files, and stop `background` at the end.

    Raises:
        UserError: the files can't be read; nothing was started.
    """
    assert settings.manifests  # noqa: S101 - for the type checker: the caller has checked this
    cluster = Manifests.load(settings.manifests, longhorn_namespace=settings.longhorn_namespace)
    rows = rows_from_manifests(cluster, policy_of(settings))
    vm_statuses = vm_statuses_of(cluster, rows)
    messages = {(row.namespace, row.name): row.said_by_reunite for row in rows if row.said_by_reunite}
    try:
        yield Sources(
            cluster,
            cluster.objects.origin(settings.manifests.name),
            {"objects": cluster.objects.size, "ignored": dict(cluster.objects.ignored)},
            vm_statuses=lambda: vm_statuses,
            reunite_messages=lambda: messages,
        )
    finally:
        await background.stop()
