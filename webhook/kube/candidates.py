"""Candidates: the VMs of a live cluster that did not ask for co-scheduling and have a share-manager, for the page.

Everything comes from the caches. Nothing is computed before somebody asks. A pass over the VMs then computes those
again whose records have changed, at most each 10 s, in slices of 3 ms. What the webhook would decide for a VM rests on
all pods and nodes, and changes with any of them. It is therefore decided when somebody asks for this VM, not in a pass.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from math import inf
from typing import Final

from msgspec import Struct

from webhook.core.api.meta import utc_text
from webhook.core.api.pod import Pod
from webhook.core.observe import candidate
from webhook.core.observe.candidate import Candidate
from webhook.core.observe.vm_status import VMStatus
from webhook.core.opt_in import Mode, Policy
from webhook.core.view import NeedObjects
from webhook.kube.cache.cached_view import CachedView, late_sentences
from webhook.kube.cache.caches import Caches
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.records.templates import next_pod
from webhook.kube.records.virt_launchers import vm_key
from webhook.kube.row_records import RowRecords
from webhook.kube.slices import COUNT_EVERY, Slices
from webhook.kube.vm_seconds import PASS_SECONDS

OFF: Final = "the cluster's mode is off, so the webhook places no VM whose annotation is true"
POD_WAITS: Final = "a pod of the VM waits for a node"
CHANGED: Final = "the VM has changed since the server last looked at it"
NO_POD: Final = "the server does not have the whole pod of the VM"


class Candidates(Struct, frozen=True, kw_only=True):
    """The VMs after one pass.

    Attributes:
        at: when the pass ended (RFC 3339).
        rows: one status a VM, as if the VM had opted in, in no order. The same object as long as no row changes.
        late: a sentence for each cache that is not up to date: the rows may be older than `at`.
        known: whether the pods of the VMs were listed once. If not, `rows` is empty and says nothing.
    """

    at: str
    rows: Sequence[VMStatus]
    late: tuple[str, ...]
    known: bool = True


class CandidateTracker:
    """The candidates of one cluster."""

    def __init__(self, caches: Caches, policy: Policy, *, wall: Callable[[], float] = time.time) -> None:
        self._caches = caches
        self._policy = policy
        self._wall = wall
        self._view = CachedView(caches)
        self._keys: dict[str, tuple[str, ...]] = {}  # NAMESPACE/NAME of a VM -> the cache keys of its pods
        self._records = RowRecords(self._view)
        self._rows: dict[str, VMStatus] = {}
        self._changed = False  # whether a row has changed since the last pass ended
        self._passing = asyncio.Lock()
        self._passed_at = -inf
        self._last = Candidates(at="", rows=(), late=(), known=False)

    async def refresh(self) -> Candidates:
        """Return the result of a pass that is not older than 10 s."""
        async with self._passing:
            now = asyncio.get_running_loop().time()
            if now - self._passed_at >= PASS_SECONDS:
                await self._pass()
                self._passed_at = asyncio.get_running_loop().time()
        return self._last

    def candidate(self, row: VMStatus) -> Candidate | str:
        """Return what the webhook would decide for the VM of this row now; or why that is not known."""
        late = ", ".join(cache.resource.title for cache in self._late())
        if late:
            return f"the server is not up to date: {late}"
        keys = self._keys.get(f"{row.namespace}/{row.name}", ())
        found = [(key, record) for key in keys if (record := self._view.virt_launcher(key))]
        if any(record.common.node is None for _, record in found):
            return POD_WAITS
        pods = [pod for each in found if (pod := next_pod(*each))]
        if not pods or len(pods) < len(found):
            return NO_POD if found else CHANGED
        with self._caches.without(keys):
            decided = candidate.candidate_of(pods, CachedView(self._caches), self._policy)
        assert not isinstance(decided, NeedObjects)  # noqa: S101 - for the type checker: nothing is NOT_CACHED there
        return decided or CHANGED

    def owner(self, row: VMStatus) -> str:
        """Return the VirtualMachine of this row, as KubeVirt names it. No cache has VirtualMachines."""
        return row.name

    async def _pass(self) -> None:
        slices = Slices()
        keys = await self._groups(slices)
        await self._records.pass_over(keys, slices, self._renew)
        self._keys = keys
        self._last = Candidates(
            at=utc_text(self._wall()),
            rows=tuple(self._rows.values()) if self._changed else self._last.rows,
            late=(OFF,) if self._policy.mode is Mode.OFF else late_sentences(self._late()),
            known=self._view.knows_pods() and self._policy.mode is not Mode.OFF,
        )
        self._changed = False

    async def _groups(self, slices: Slices) -> dict[str, tuple[str, ...]]:
        """Return NAMESPACE/NAME of each VM that did not ask -> the cache keys of its pods."""
        asked: set[str] = set()
        for number, (key, _) in enumerate(self._view.opted_in_pods(self._policy)):
            if number % COUNT_EVERY == 0:
                await slices.step()
            asked.add(key)
        groups: dict[str, tuple[str, ...]] = {}
        others: set[str] = set()
        for number, (key, virt_launcher) in enumerate(self._view.all_virt_launchers()):
            if number % COUNT_EVERY == 0:
                await slices.step()
            vm = vm_key(key, virt_launcher)
            if key in asked or not virt_launcher.claims:
                others.add(vm)
            else:
                groups[vm] = (*groups.get(vm, ()), key)
        return {vm: keys for vm, keys in groups.items() if vm not in others}

    def _renew(self, vm: str, pods: list[Pod] | None) -> None:
        self._put(vm, candidate.status_if_asked(pods, self._view, self._policy) if pods is not None else None)

    def _put(self, vm: str, row: VMStatus | None) -> None:
        if row == self._rows.get(vm):
            return
        self._changed = True
        if row is None:
            del self._rows[vm]
        else:
            self._rows[vm] = row

    def _late(self) -> list[ListWatch]:
        """Return the caches that are not fresh: a decision reads all of them."""
        now = asyncio.get_running_loop().time()
        return [cache for cache in self._caches.values() if not cache.fresh(now)]
