"""Feed: the answers of /api/state: all rows, the last decisions, and whether they are up to date.

Everything comes from memory. Rows are encoded in short slices, so that the process answers calls in between. The
process makes one body at a time, and a new one only after a change; it sends it to every page that asks.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, metadata
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from webhook import __version__
from webhook.core.admit import Entry
from webhook.core.observe.events import Messages
from webhook.core.observe.remedy import with_message
from webhook.core.observe.vm_status import VMStatus, percent_together
from webhook.invocation import Invocation
from webhook.telemetry.record import DEBUG, AdmissionRecord

if TYPE_CHECKING:
    from webhook.kube.vm_status import VMStatuses

KEPT: Final = 300
_SLICE_ROWS: Final = 64  # a row takes about 15 us
_GZIP: Final = 16 + zlib.MAX_WBITS
_LEVEL: Final = 1  # a tenth of the size, in a third of the time of level 6
_OF_VMS: Final = Entry.VIRT_LAUNCHER.title
_encoder: Final = msgspec.json.Encoder()


class Decisions:
    """The last calls that this replica answered, KEPT at most: each costs one append. `total`: all since the start."""

    def __init__(self) -> None:
        self.total = 0
        self._records: deque[AdmissionRecord] = deque(maxlen=KEPT)

    def note(self, record: AdmissionRecord) -> None:
        """Add the record of a call; not if the pod's owner does not exist, because anybody can send such a call."""
        if record.level != DEBUG:
            self._records.append(record)
            self.total += 1

    def last(self) -> Sequence[AdmissionRecord]:
        """Return the stored records, the newest first."""
        return list(reversed(self._records))


class About(NamedTuple):
    """What a feed also tells.

    Attributes:
        replica: the name of this process.
        cluster: the address of the API server, or the files.
        commands: makes the commands of this program for the same cluster.
        files: whether files describe the cluster.
        reunite_messages: returns what `reunite` last said of VMs.
        documents: the address of the documents; empty if nobody publishes them.
        has_vm: whether the cluster has a VirtualMachineInstance of this namespace and name, or may have it.
    """

    replica: str
    cluster: str
    commands: Invocation = Invocation()
    files: bool = False
    reunite_messages: Callable[[], Messages] = dict
    documents: str = ""
    has_vm: Callable[[str, str], bool] = lambda *_: True


def published_documents() -> str:
    """Return the URL "Documentation" of the installed package (`project.urls` in pyproject.toml); empty without it."""
    try:
        urls = metadata("kubevirt-coschedule").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = (url.partition(", ") for url in urls)
    return next((address for name, _, address in named if name == "Documentation"), "")


class Body(NamedTuple):
    """An answer of /api/state: gzipped JSON, and the ETag that changes with it."""

    etag: str
    packed: bytes


class _Made(NamedTuple):
    """What a body is made of."""

    vm_statuses: VMStatuses
    decided: int
    messages: Messages


class Feed:
    """The answers for one source of rows and the decisions of this process."""

    def __init__(self, vm_statuses: Callable[[], VMStatuses], decisions: Decisions, about: About) -> None:
        """`vm_statuses` returns the rows of the last pass."""
        self._vm_statuses = vm_statuses
        self._decisions = decisions
        self._about = about
        self._process = token_hex(4)  # a page can ask another process next
        self._making = asyncio.Lock()
        self._bodies = 0
        self._last: tuple[_Made, Body] | None = None

    async def body(self) -> Body:
        """Return the state as it is now."""
        async with self._making:
            now = _Made(
                self._vm_statuses(),
                self._decisions.total,
                self._about.reunite_messages(),
            )
            if self._last is None or not _same(self._last[0], now):
                self._bodies += 1
                self._last = now, Body(f'"{self._process}-{self._bodies}"', await self._packed(now))
            return self._last[1]

    async def _packed(self, now: _Made) -> bytes:
        packed = zlib.compressobj(_LEVEL, wbits=_GZIP)
        parts = [packed.compress(_encoder.encode(self._head(now))[:-1] + b',"rows":[')]
        rows = now.vm_statuses.rows
        for number, start in enumerate(range(0, len(rows), _SLICE_ROWS)):
            if number:
                await asyncio.sleep(0)
            items = [self._item(row, now.messages) for row in rows[start : start + _SLICE_ROWS]]
            parts.append(packed.compress((b"," if number else b"") + _encoder.encode(items)[1:-1]))
        parts += [packed.compress(b"]}"), packed.flush()]
        return b"".join(parts)

    def _item(self, row: VMStatus, messages: Messages) -> VMStatus:
        """Return the row as the page gets it."""
        return with_message(row, messages.get((row.namespace, row.name), "")).shown_by(self._about.commands)

    def _last_decisions(self) -> list[dict[str, Any]]:
        """The last decisions, without those on VMs that the cluster does not have, or no longer has."""
        return [
            _decision(each)
            for each in self._decisions.last()
            if each.entry != _OF_VMS or self._about.has_vm(each.namespace or "", each.vmi or "")
        ]

    def _head(self, now: _Made) -> dict[str, Any]:
        snapshot = now.vm_statuses
        return {
            "version": __version__,
            "cluster": self._about.cluster,
            "replica": self._about.replica,
            "documents": self._about.documents,
            "options": " ".join(self._about.commands.options),
            "files": self._about.files,
            "known": snapshot.known,
            "at": snapshot.at,
            "asOf": snapshot.as_of,
            "late": snapshot.late,
            "counts": snapshot.counts,
            "together": percent_together(snapshot.counts),
            "decided": {"total": now.decided, "kept": KEPT, "last": self._last_decisions()},
        }


def _same(before: _Made, now: _Made) -> bool:
    """Whether a body made of `before` is still right: each pass of the tracker makes a new snapshot."""
    return before.vm_statuses is now.vm_statuses and before[1:] == now[1:]


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
