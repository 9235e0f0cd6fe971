"""Candidates: the answers of /api/candidates: the VMs with a share-manager that did not ask for co-scheduling.

Everything comes from memory, and is computed only while a page asks. The VMs are counted, and the webhook's decision is
made for those alone that the answer lists. Between two passes over the VMs each decision is made once.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, Self

import msgspec
from msgspec import Struct

from webhook.core.observe.candidate import Candidate, opt_in_change
from webhook.core.observe.vm_status import State, VMStatus
from webhook.kube.candidates import Candidates
from webhook.kube.slices import Slices

ROWS_MAX: Final = 200
_LOOK_EVERY: Final = 64  # VMs between two looks at the clock; a filter takes 3 us
_FILTER_CHARS: Final = 300
_NAMESPACES_MAX: Final = 500
_NODE: Final = "node:"
# A VM that is apart gains most.
_ORDER: Final = {
    state: rank
    for rank, state in enumerate((State.APART, State.STUCK, State.UNKNOWN, State.PENDING, State.FREE, State.TOGETHER))
}
_GZIP: Final = 16 + zlib.MAX_WBITS
_encoder: Final = msgspec.json.Encoder()


class CandidateSource(Protocol):
    """What an answer is made of: a CandidateTracker of a live cluster, or the VMs of files."""

    async def refresh(self) -> Candidates:
        """Return the VMs."""

    def candidate(self, row: VMStatus) -> Candidate | str:
        """Return what the webhook would decide for the VM of this row; or why that is not known."""

    def owner(self, row: VMStatus) -> str | None:
        """Return the VirtualMachine of this row; None if the VM has none."""


class CandidateQuery(Struct, frozen=True, kw_only=True):
    """What a page asks for: the filter of the page, and how many rows it shows."""

    namespace: str = ""
    text: str = ""
    states: frozenset[str] = frozenset()
    limit: int = 0

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> Self:
        """Return what this query asks for. A limit counts as 0 if it is not a number."""
        limit = query.get("limit", "")
        return cls(
            namespace=query.get("namespace", "")[:_FILTER_CHARS],
            text=query.get("text", "")[:_FILTER_CHARS].lower(),
            states=frozenset(query.get("state", "")[:_FILTER_CHARS].split(",")) - {""},
            limit=min(int(limit), ROWS_MAX) if limit.isascii() and limit.isdigit() and len(limit) < 9 else 0,  # noqa: PLR2004 - digits
        )

    def selects(self, row: VMStatus) -> bool:
        """Whether the filter selects the VM, by the rules of the page's list (static/model.js, selects)."""
        if self.namespace not in ("", row.namespace) or (self.states and row.state not in self.states):
            return False
        if not self.text:
            return True
        nodes = [row.node, *(volume.node for volume in row.volumes)]
        if self.text.startswith(_NODE):
            node = self.text[len(_NODE) :].strip()
            return any(node == name.lower() for name in (*nodes, row.only) if name)
        names = [row.name, *nodes, *(volume.claim for volume in row.volumes)]
        return any(self.text in name.lower() for name in names if name)


class _Pass(NamedTuple):
    """The VMs of one pass in the order of the page, and the rows of them that were shown since, as JSON."""

    found: Candidates
    rows: Sequence[VMStatus]
    counts: Mapping[State, int]
    namespaces: Sequence[str]
    shown: dict[tuple[str, str], bytes]

    @classmethod
    def of(cls, found: Candidates, before: _Pass | None) -> Self:
        """Return the pass without any shown row. If no VM has changed since `before`, this costs nothing."""
        if before and before.found.rows is found.rows:
            return cls(found, before.rows, before.counts, before.namespaces, {})
        rows = sorted(found.rows, key=_order)
        namespaces = sorted({row.namespace for row in rows})
        return cls(found, rows, Counter(row.state for row in rows), namespaces[:_NAMESPACES_MAX], {})


class CandidateFeed:
    """The answers for one source. Without a source nothing is known.

    `audit`: whether the webhook tells its decisions and does not carry them out.
    """

    def __init__(self, source: CandidateSource | None, *, audit: bool = False) -> None:
        self._source = source
        self._audit = audit
        self._pass: _Pass | None = None

    async def body(self, query: CandidateQuery) -> bytes:
        """Return the counts and the first rows as gzipped JSON."""
        if self._source is None:
            return await _packed(
                {"follows": False, "known": False, "late": (), "total": 0, "matching": 0}, (), Slices()
            )
        slices, found = Slices(), await self._source.refresh()
        known = self._pass
        if known is None or known.found is not found:
            known = self._pass = _Pass.of(found, known)
        chosen: list[VMStatus] = []
        for number, row in enumerate(known.rows):
            if number % _LOOK_EVERY == 0:
                await slices.step()
            if query.selects(row):
                chosen.append(row)
        rows = []
        for row in chosen[: query.limit]:
            await slices.step()
            rows.append(_row(row, known, self._source))
        head = {
            "follows": True,
            "audit": self._audit,
            "known": found.known,
            "at": found.at,
            "late": found.late,
            "total": len(known.rows),
            "counts": known.counts,
            "namespaces": known.namespaces,
            "matching": len(chosen),
        }
        return await _packed(head, rows, slices)


def _row(row: VMStatus, known: _Pass, source: CandidateSource) -> bytes:
    key = row.namespace, row.name
    shown = known.shown.get(key)
    if shown is None:
        candidate = source.candidate(row)
        shown = _encoder.encode(_shape(row, candidate, source.owner(row)))
        if isinstance(candidate, Candidate):
            known.shown[key] = shown
    return shown


def _order(row: VMStatus) -> tuple[int, str, str]:
    return _ORDER[row.state], row.namespace, row.name


def _shape(row: VMStatus, candidate: Candidate | str, owner: str | None) -> dict[str, Any]:
    """Return a row as the page gets it. `next` is None if it is not known; `unknown` then says why.

    `change` is the command that opts the VM in; without one `no_change` says why.
    """
    change, no_change = opt_in_change(candidate, owner) if isinstance(candidate, Candidate) else ("", candidate)
    return {
        "namespace": row.namespace,
        "name": row.name,
        "node": row.node,
        "state": row.state,
        "volumes": [
            {
                "claim": volume.claim,
                "volume": volume.volume,
                "node": volume.node,
                "together": volume.together,
                "reason": volume.why.reason.code,
            }
            for volume in row.volumes
            if volume.state or volume.node or row.state is State.UNKNOWN
        ],
        "annotation": candidate.annotation if isinstance(candidate, Candidate) else None,
        "next": candidate.next_start if isinstance(candidate, Candidate) else None,
        "unknown": "" if isinstance(candidate, Candidate) else candidate,
        "change": change,
        "noChange": no_change,
    }


async def _packed(head: Mapping[str, Any], rows: Iterable[bytes], slices: Slices) -> bytes:
    packed = zlib.compressobj(1, wbits=_GZIP)
    parts = [packed.compress(_encoder.encode(head)[:-1] + b',"rows":[')]
    for number, row in enumerate(rows):
        await slices.step()
        parts.append(packed.compress(b"," + row if number else row))
    return b"".join([*parts, packed.compress(b"]}"), packed.flush()])
