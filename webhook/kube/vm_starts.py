"""VMStarts: how many VMs that asked for co-scheduling have started, by the decision for their pod.

What a reader may assume: a start is counted once, when the cache of pods adds its pod. That pod is neither the target
of a migration nor one that only provisions a disk. Pods of the first list started at an unknown time and are not
counted. A watch that continues after an interruption shows every pod. If the API server makes the cache list again,
the list has the pods that were created meanwhile. It lacks those that were deleted meanwhile, and nobody can count
these.
"""

from __future__ import annotations

from collections.abc import Mapping

from webhook.core.observe.past_decision import Decided, past_decision
from webhook.core.opt_in import OptIn, Policy, opt_in_of, why_other_pod
from webhook.core.view import Kind
from webhook.kube.cache.cached_view import CachedView
from webhook.kube.cache.caches import Caches
from webhook.kube.records.pods import PodRecord


class VMStarts:
    """The starts that `caches` have shown since their first list of pods."""

    def __init__(self, caches: Caches, policy: Policy) -> None:
        self._policy = policy
        self._view = CachedView(caches)
        self._pods = caches[Kind.VIRT_LAUNCHER_POD]
        self._pods.on_add = self._count
        self._starts = dict.fromkeys(Decided, 0)
        del self._starts[Decided.MIGRATED]  # no VM starts by a migration

    @property
    def by_decision(self) -> Mapping[Decided, int]:
        """The number of starts by decision; empty before the first list, because nothing is known then."""
        return self._starts if self._pods.synced else {}

    def _count(self, _: str, record: PodRecord) -> None:
        pod = record.virt_launcher
        if pod is None or why_other_pod(pod, "", self._view) is not None:
            return
        if isinstance(opt_in_of(pod, pod.metadata.namespace or "", self._view, self._policy), OptIn):
            self._starts[past_decision(pod).decided] += 1
