"""VMStarts and VMSeconds: how many VMs that asked for co-scheduling have started, and how long VMs had each state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.core.observe.past_decision import Decided, past_decision
from webhook.core.observe.vm_status import State
from webhook.core.opt_in import OptIn, Policy, opt_in_of, why_other_pod
from webhook.core.view import Kind
from webhook.kube.cache.cached_view import CachedView
from webhook.kube.cache.caches import Caches
from webhook.kube.records.pods import PodRecord

PASS_SECONDS: Final = 10.0  # from the end of one pass to the beginning of the next
_GAP_SECONDS_MAX: Final = 2 * PASS_SECONDS


class VMStarts:
    """The starts that `caches` have shown since their first list of pods, by the decision for their pod.

    What a reader may assume: a start is counted once, when the cache of pods adds its pod. That pod is neither the
    target of a migration nor one that only provisions a disk. Pods of the first list started at an unknown time and are
    not counted. A watch that continues after an interruption shows every pod. If the API server makes the cache list
    again, the list has the pods that were created meanwhile. It lacks those that were deleted meanwhile, and nobody can
    count these.
    """

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


class VMSeconds:
    """The VM-seconds of one cluster since the process started, by state.

    What a reader may assume: no number ever decreases, and no time is counted that no pass saw. Two passes that end
    more than twice PASS_SECONDS apart have a pass missing between them: nothing is counted, not even as unknown.
    """

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(State, 0.0)
        self._before: tuple[Mapping[State, int], bool, float] | None = None

    @property
    def by_state(self) -> Mapping[State, float]:
        """The VM-seconds of every state."""
        return self._seconds

    def add(self, counts: Mapping[State, int], *, late: bool, at: float) -> None:
        """Count the time since the pass before, in the states that the pass before found.

        `at` is when this pass ended, by a clock that never goes back. `late` says that a cache was not up to date. If
        this pass or the pass before was late, the time counts as unknown for every VM.
        """
        before, self._before = self._before, (counts, late, at)
        if before is None:
            return
        counts_before, late_before, at_before = before
        seconds = at - at_before
        if seconds > _GAP_SECONDS_MAX:
            return
        for state, count in counts_before.items():
            self._seconds[State.UNKNOWN if late or late_before else state] += count * seconds
