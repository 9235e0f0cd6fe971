"""How many migrations may run at once: in the cluster, and from and to one node.

KubeVirt queues what is above its own limits, and would then start ours before somebody's drain. So one migration of
KubeVirt's limit stays free for others. With a limit of 1 that can't be: ours starts only while no other migration runs,
and a drain that begins meanwhile waits for the end of this one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from webhook.core.reunite.limits import KubeVirtLimits, ReuniteLimits
from webhook.core.reunite.migration import Migration
from webhook.core.reunite.not_yet import NotYet, Rule


class MigrationBudget:
    """What is left at one moment. `take` counts a migration that starts now.

    Args:
        running: all migrations of the cluster that are not final.
        nodes_of: namespace and VMI -> node on which the VM runs: a migration without a source yet is counted there.
        homes_of: namespace and VMI -> node of its share-managers: a migration of ours without a target yet leads there.

    KubeVirt writes both nodes into a migration at its end.
    """

    def __init__(
        self,
        running: Iterable[Migration],
        limits: ReuniteLimits,
        kubevirt: KubeVirtLimits,
        nodes_of: Mapping[tuple[str, str], str],
        homes_of: Mapping[tuple[str, str], str],
    ) -> None:
        self._limits = limits
        self._outbound_limit = kubevirt.parallel_outbound_per_node
        # With 0 KubeVirt starts no migration at all.
        self._cluster_limit = min(kubevirt.parallel_per_cluster, max(1, kubevirt.parallel_per_cluster - 1))
        self._all = self._ours = 0
        self._ours_at: Counter[str] = Counter()
        self._outbound: Counter[str] = Counter()
        self._anywhere = 0  # ours without a known target: each node counts them
        for migration in running:
            key = (migration.namespace, migration.vmi)
            target = migration.target_node or (homes_of.get(key) if migration.ours else None)
            self._count(migration.source_node or nodes_of.get(key), target, ours=migration.ours)

    def why_not(self, source: str, target: str) -> NotYet | None:
        """Return why no migration between these nodes may start; None if one may."""
        if self._ours >= self._limits.at_once:
            return Rule.CLUSTER_BUSY.says_no(running=self._ours, limit=self._limits.at_once)
        if self._all >= self._cluster_limit:
            return Rule.CLUSTER_BUSY.says_no(running=self._all, limit=self._cluster_limit)
        if self._outbound[source] >= self._outbound_limit:
            return Rule.NODE_BUSY.says_no(running=self._outbound[source], node=source, limit=self._outbound_limit)
        for node in (source, target):
            running, limit = self._ours_at[node] + self._anywhere, self._limits.at_once_per_node
            if running >= limit:
                return Rule.NODE_BUSY.says_no(running=running, node=node, limit=limit)
        return None

    def take(self, source: str, target: str) -> None:
        """Count a migration of ours that starts now."""
        self._count(source, target, ours=True)

    def _count(self, source: str | None, target: str | None, *, ours: bool) -> None:
        self._all += 1
        self._ours += ours
        if source:
            self._outbound[source] += 1
        if ours and target is None:
            self._anywhere += 1
        elif ours:
            self._ours_at.update({node for node in (source, target) if node})
