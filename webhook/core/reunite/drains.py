"""Which migrations were drains, where KubeVirt does not say so by a priority.

KubeVirt makes the same migration for a drain and for an eviction by a descheduler. The node that the VM left can show
the difference, while it is cordoned and after it was not Ready. No balancer does either.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from math import inf

from webhook.core.api.node import Node
from webhook.core.reunite.history import unix_seconds
from webhook.core.reunite.migration import Migration


def drained(migrations: Iterable[Migration], nodes: Mapping[str, Node], known: Container[str] = ()) -> frozenset[str]:
    """Return the uids of the migrations by which a VM left a node that was cordoned then, or not Ready later.

    Args:
        migrations: all of the cluster.
        nodes: by name.
        known: what an earlier call returned. An uncordoned node does not show any more that it was cordoned.
    """
    return frozenset(
        migration.uid
        for migration in migrations
        if migration.has_no_reason
        and (migration.uid in known or _was_a_drain(migration, nodes.get(migration.evacuates or "")))
    )


def _was_a_drain(migration: Migration, node: Node | None) -> bool:
    if node is None:
        return False
    ended = unix_seconds(migration.ended_or_created) if migration.is_final else inf
    cordoned, ready = unix_seconds(node.cordoned_since or ""), unix_seconds(node.ready_since or "")
    return 0 < cordoned <= ended or ready > ended
