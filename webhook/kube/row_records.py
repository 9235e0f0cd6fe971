"""RowRecords: the cached records that the row of each VM was made of. A pass computes a row again if one changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from typing import Final

from webhook.core.api.pod import Pod
from webhook.kube.cache.cached_view import CachedView
from webhook.kube.records import virt_launchers
from webhook.kube.slices import COUNT_EVERY, Slices

_LOOK_EVERY: Final = 16  # VMs between two looks at the clock; a row takes 30 us


class RowRecords:
    """The records of the last pass. `once`: there is only one pass, so that none are stored."""

    def __init__(self, view: CachedView, *, once: bool = False) -> None:
        self._view = view
        self._once = once
        self._sync_problems: tuple[str, ...] | None = None
        # By NAMESPACE/NAME of the VM: a text, because the garbage collector does not visit texts.
        self._records: dict[str, tuple[object, ...]] = {}

    async def pass_over(
        self, groups: Mapping[str, Sequence[str]], slices: Slices, renew: Callable[[str, list[Pod] | None], None]
    ) -> None:
        """Make one pass over `groups`: NAMESPACE/NAME of each VM -> the cache keys of its pods.

        Call `renew` with each VM whose records have changed, and its pods; with None for a VM that is gone.
        """
        self._begin()
        for number, (vm, keys) in enumerate(groups.items()):
            if number % _LOOK_EVERY == 0:
                await slices.step()
            pods = self._pods_if_changed(vm, keys)
            if pods is not None:
                renew(vm, pods)
        for number, vm in enumerate(list(self._records)):
            if number % COUNT_EVERY == 0:
                await slices.step()
            if vm not in groups:
                del self._records[vm]
                renew(vm, None)

    def _begin(self) -> None:
        """Every row counts as changed if a cache was synced since the last pass, or is not synced any more."""
        problems = self._view.sync_problems()
        if problems != self._sync_problems:
            self._sync_problems = problems
            self._records = dict.fromkeys(self._records, ())

    def _pods_if_changed(self, vm: str, keys: Iterable[str]) -> list[Pod] | None:
        """Return the pods of these cache keys; None if the row of this VM is made of the same records as before."""
        found = [(key, record) for key in keys if (record := self._view.virt_launcher(key))]
        records = () if self._once else tuple(behind for each in found for behind in self._view.records_behind(*each))
        before = self._records.get(vm)
        if before is not None and len(before) == len(records) and all(map(is_, before, records)):
            return None
        self._records[vm] = records
        return [virt_launchers.to_object(*each) for each in found]
