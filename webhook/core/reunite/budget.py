"""How many migrations may run at once: in the cluster, and from and to one node.

KubeVirt queues what is above its own limits, and would then start ours before somebody's drain. So one migration of
KubeVirt's limit stays free for others. With a limit of 1 that can't be: ours starts only while no other migration runs,
and a drain that begins meanwhile waits for the end of this one.
"""

from __future__ import annotations

from collections import Counter

from webhook.core.live_migration.kubevirt import MigrationConfiguration
from webhook.core.reunite.limits import ReuniteLimits
from webhook.core.reunite.not_yet import NotYet, Rule


class MigrationBudget:
    """What is left at one moment. `count` counts a migration that runs, or starts now."""

    def __init__(self, limits: ReuniteLimits, kubevirt: MigrationConfiguration) -> None:
        self._limits = limits
        self._outbound_limit = kubevirt.outbound_per_node
        # With 0 KubeVirt starts no migration at all.
        self._cluster_limit = min(kubevirt.per_cluster, max(1, kubevirt.per_cluster - 1))
        self._all = self._ours = 0
        self._ours_at: Counter[str | None] = Counter()  # at None those without a known target: each node counts them
        self._outbound: Counter[str | None] = Counter()

    def count(self, source: str | None, target: str | None, *, ours: bool) -> None:
        """Count a migration between these nodes; None for a node that is not known."""
        self._all += 1
        self._outbound[source] += 1
        if ours:
            self._ours += 1
            self._ours_at.update({source or target, target} if target else {None})

    def why_not(self, source: str, target: str) -> NotYet | None:
        """Return why no migration between these nodes may start; None if one may."""
        limits = self._limits
        for running, limit in ((self._ours, limits.at_once), (self._all, self._cluster_limit)):
            if running >= limit:
                return Rule.CLUSTER_BUSY.says_no(running=running, limit=limit)
        for node, running, limit in (
            (source, self._outbound[source], self._outbound_limit),
            *((node, self._ours_at[node] + self._ours_at[None], limits.at_once_per_node) for node in (source, target)),
        ):
            if running >= limit:
                return Rule.NODE_BUSY.says_no(running=running, node=node, limit=limit)
        return None
