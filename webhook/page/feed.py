"""Feed: the answers of /api/state: the rows that changed, the new decisions, and whether they are up to date.

Everything comes from memory. Rows are encoded in short slices, so that the process answers calls in between. The
process makes one body of all rows at a time, and sends it to every page that asks within 1 s.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from webhook.core.observe.past_decision import Decided
from webhook.core.observe.reunite_messages import Messages
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.observe.vm_volumes import VMVolumeStatus
from webhook.core.opt_in import Mode, OptedInBy
from webhook.page.decisions import KEPT, Decisions
from webhook.telemetry.record import AdmissionRecord

if TYPE_CHECKING:
    from webhook.kube.vm_status import Changes, VMStatuses

_SLICE_ROWS: Final = 64  # a row takes about 15 us
_WHOLE_SECONDS: Final = 1.0
_WORDS_MAX: Final = 500  # VMs of which an answer tells what `reunite` said
_GZIP: Final = 16 + zlib.MAX_WBITS
_LEVEL: Final = 1  # a tenth of the size, in a third of the time of level 6
_encoder: Final = msgspec.json.Encoder()


class Cursor(NamedTuple):
    """How far a page has read: the process that answered, the version of the rows, the number of the last decision."""

    process: str
    version: int
    decided: int

    @classmethod
    def parse(cls, text: str) -> Cursor | None:
        """Return the cursor that `str` wrote as this text; None for any other text."""
        process, *numbers = text.split(".")
        if len(numbers) != 2 or not all(each.isascii() and each.isdigit() and len(each) < 16 for each in numbers):  # noqa: PLR2004 - the fields
            return None
        return cls(process, *map(int, numbers))

    def __str__(self) -> str:
        return f"{self.process}.{self.version}.{self.decided}"


class VMStatusSource(Protocol):
    """What a feed asks for the rows: a VMStatusTracker of a live cluster, or the rows of files."""

    @property
    def snapshot(self) -> VMStatuses:
        """The rows of the last pass."""

    def changes(self, version: int) -> Changes:
        """Return what has changed since this version."""

    async def after(self, version: int) -> VMStatuses:
        """Wait for a snapshot that is newer than this version, and return it."""


class About(NamedTuple):
    """What a feed also tells.

    Attributes:
        replica: the name of this process.
        from_files: whether the rows come from files.
        reunite_messages: returns what `reunite` last said of VMs.
    """

    replica: str
    from_files: bool = False
    reunite_messages: Callable[[], Messages] = dict


class Feed:
    """The answers for one source of rows and the decisions of this process. Without a source there are no rows."""

    def __init__(self, vm_statuses: VMStatusSource | None, decisions: Decisions, about: About) -> None:
        self._vm_statuses = vm_statuses
        self._decisions = decisions
        self._about = about
        self._process = token_hex(4)  # a page can come from another process, whose versions are different
        self._making = asyncio.Lock()
        self._whole: tuple[float, bytes] | None = None

    async def wait(self, cursor: Cursor, seconds: float) -> None:
        """Wait until there is a change after this cursor, or until `seconds` have passed."""
        if cursor.process != self._process:
            return
        waits = [asyncio.ensure_future(self._decisions.until_after(cursor.decided))]
        if self._vm_statuses is not None:
            waits.append(asyncio.ensure_future(self._until_changed(self._vm_statuses, cursor.version)))
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    @staticmethod
    async def _until_changed(vm_statuses: VMStatusSource, version: int) -> None:
        await vm_statuses.after(version)

    async def body(self, cursor: Cursor | None) -> bytes:
        """Return the changes after this cursor as gzipped JSON; everything if it is None or of another process."""
        if cursor is not None and cursor.process == self._process:
            changes = self._vm_statuses.changes(cursor.version) if self._vm_statuses is not None else None
            if changes is None or not changes.whole:
                return await self._made(changes, cursor.decided)
        async with self._making:
            now = asyncio.get_running_loop().time()
            if self._whole is None or now - self._whole[0] >= _WHOLE_SECONDS:
                changes = self._vm_statuses.changes(-1) if self._vm_statuses is not None else None
                self._whole = (now, await self._made(changes, -1))
            return self._whole[1]

    async def _made(self, changes: Changes | None, decided: int) -> bytes:
        """Encode the head first: a change that comes while rows are encoded is then after the cursor in the head."""
        head = _encoder.encode(self._head(changes, decided))
        packed = zlib.compressobj(_LEVEL, wbits=_GZIP)
        parts = [packed.compress(head[:-1] + b',"rows":[')]
        for number, piece in enumerate(_pieces(changes.rows if changes else ())):
            if number:
                await asyncio.sleep(0)
            parts.append(packed.compress(b"," + piece if number else piece))
        parts += [packed.compress(b"]}"), packed.flush()]
        return b"".join(parts)

    def _head(self, changes: Changes | None, decided: int) -> dict[str, Any]:
        vm_statuses, total = self._vm_statuses, self._decisions.total
        snapshot = vm_statuses.snapshot if vm_statuses is not None else None
        version = changes.version if changes else 0
        return {
            "cursor": str(Cursor(self._process, version, total)),
            "now": datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds"),
            "replica": self._about.replica,
            "follows": vm_statuses is not None,
            "source": "files" if self._about.from_files else "cluster",
            "known": snapshot is not None and snapshot.known,
            "at": snapshot.at if snapshot else None,
            "asOf": snapshot.as_of if snapshot else None,
            "nodes": snapshot.nodes if snapshot else None,
            "late": snapshot.late if snapshot else (),
            "reunite": [(*vm, said) for vm, said in islice(self._about.reunite_messages().items(), _WORDS_MAX)],
            "counts": snapshot.counts if snapshot else {},
            "decided": {"total": total, "kept": KEPT, "new": list(map(_decision, self._decisions.after(decided)))},
            "whole": changes is None or changes.whole,
            "gone": changes.gone if changes else (),
        }


def _pieces(rows: Sequence[VMStatus]) -> Iterator[bytes]:
    for start in range(0, len(rows), _SLICE_ROWS):
        yield _encoder.encode([_shape(row) for row in rows[start : start + _SLICE_ROWS]])[1:-1]


class _Volume(Struct, kw_only=True, gc=False):
    claim: str
    volume: str | None
    node: str | None
    together: bool | None
    state: str | None
    since: str | None
    reason: str
    because: str


class _Row(Struct, kw_only=True, gc=False):
    """A row as the page gets it. It is a Struct because thousands of dicts would start the garbage collector."""

    namespace: str
    name: str
    state: State
    since: str | None
    node: str | None
    mode: Mode
    decided: Decided
    asked: str
    by: str
    pinned: bool
    only: str | None
    migrating: bool
    reason: str
    because: str
    cure: str
    volumes: tuple[_Volume, ...]


def _shape(row: VMStatus) -> _Row:
    return _Row(
        namespace=row.namespace,
        name=row.name,
        state=row.state,
        since=row.since,
        node=row.node,
        mode=row.mode,
        decided=row.decided,
        asked=row.asked,
        by="" if row.by is OptedInBy.VM else row.by,
        pinned=row.pinned,
        only=row.only,
        migrating=row.migrating,
        reason=row.why.reason.code,
        because=row.why.sentence,
        cure=row.cure.sentence if row.cure else "",  # the open row has the commands
        volumes=tuple(_volume(volume, row) for volume in row.volumes),
    )


def _volume(volume: VMVolumeStatus, row: VMStatus) -> _Volume:
    """Return the volume as the page gets it. The row's sentence is left out, because most volumes share it."""
    return _Volume(
        claim=volume.claim,
        volume=volume.volume,
        node=volume.node,
        together=volume.together,
        state=volume.state,
        since=volume.since,
        reason=volume.why.reason.code,
        because="" if volume.why == row.why else volume.why.sentence,
    )


def _decision(record: AdmissionRecord) -> dict[str, Any]:
    return {
        "time": record.time,
        "entry": record.entry,
        "namespace": record.namespace,
        "name": record.vmi or record.pod,
        "decision": record.decision,
        "reason": record.reason,
        "because": record.because,
        "nodes": record.nodes,
        "us": record.duration_us,
        "dry": record.dry_run,
    }
