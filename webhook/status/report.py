"""Report: the rows that somebody asked for, as they are printed with -o json and yaml.

Everything shown is in here, and only what was asked for is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter

from msgspec import Struct

from webhook.core.observe import vm_status
from webhook.core.observe.vm_status import Decided, State, VMStatus, VMVolumeStatus

TROUBLED = (State.APART, State.STUCK)


class VolumeItem(Struct, rename="camel", frozen=True, kw_only=True):
    """One claim of a VM; `node` is its share-manager's."""

    claim: str
    volume: str | None
    node: str | None
    share_manager: str | None
    together: bool | None
    since: str | None
    reason: str
    because: str


class Item(Struct, rename="camel", frozen=True, kw_only=True):
    """One VM."""

    namespace: str
    name: str
    state: State
    since: str | None
    node: str | None
    pod: str
    asked: str
    decided: Decided
    pinned: bool
    migrating: bool
    reason: str
    because: str
    volumes: list[VolumeItem]


class Report(Struct, rename="camel", frozen=True, kw_only=True):
    """What was asked for. `problems`: what could not be read; `missing`: names that no VM with a row has."""

    cluster: str
    at: str
    summary: dict[State, int]
    problems: list[str]
    missing: list[str]
    items: list[Item]


class Asked(Struct, frozen=True, kw_only=True):
    """Which VMs: of a `namespace` (empty for all), with these `names` (none for all); `apart`: and in trouble."""

    namespace: str
    names: tuple[str, ...] = ()
    apart: bool = False

    def rows(self, rows: Iterable[VMStatus]) -> list[VMStatus]:
        """Those of the rows, in order, whether in trouble or not."""
        chosen = [row for row in rows if self._is_of(row)]
        return sorted(chosen, key=attrgetter("namespace", "name"))

    def shown(self, rows: Iterable[VMStatus]) -> list[VMStatus]:
        """Of those rows the ones that are shown."""
        return [row for row in rows if not self.apart or row.state in TROUBLED]

    def missing(self, rows: Iterable[VMStatus]) -> list[str]:
        """The names that none of those rows has."""
        there = {row.name for row in rows}
        return [name for name in self.names if name not in there]

    def _is_of(self, row: VMStatus) -> bool:
        return self.namespace in ("", row.namespace) and (not self.names or row.name in self.names)


def of(asked: Asked, chosen: Collection[VMStatus], *, cluster: str, at: str, problems: Sequence[str]) -> Report:
    """The report on the rows that were asked for."""
    return Report(
        cluster=cluster,
        at=at,
        summary=vm_status.count_states(chosen),
        problems=list(problems),
        missing=asked.missing(chosen),
        items=[item(row) for row in asked.shown(chosen)],
    )


def item(row: VMStatus) -> Item:
    """A row as it is printed."""
    return Item(
        namespace=row.namespace,
        name=row.name,
        state=row.state,
        since=row.since,
        node=row.node,
        pod=row.pod,
        asked=row.asked,
        decided=row.decided,
        pinned=row.pinned,
        migrating=row.migrating,
        reason=row.why.reason.code,
        because=row.why.sentence,
        volumes=[_volume(volume) for volume in row.volumes],
    )


def _volume(volume: VMVolumeStatus) -> VolumeItem:
    return VolumeItem(
        claim=volume.claim,
        volume=volume.volume,
        node=volume.node,
        share_manager=volume.state,
        together=volume.together,
        since=volume.since,
        reason=volume.why.reason.code,
        because=volume.why.sentence,
    )
