"""Which authorities a caBundle should carry now, and why: the rules by which one enters it and leaves it.

Pure. Invariant: as long as a pair of the Secret's can be served its authority is carried; any other that is there and
has not expired stays for `retire` after it was first seen to be needed no more, whoever put it there.

Why a stranger's authority stays for that time: whoever restores a Secret or deletes it leaves servers behind that go on
serving what they have in memory, and nothing tells its authority from a stranger's. Why it goes then: whom it certifies
could answer in the webhook's place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from cryptography import x509
from msgspec import Struct

from certs.rotation.state import Configuration, Mark, Role
from certs.x509 import pki

OTHERS_AT_MOST: Final = 32  # a rotation leaves one behind; etcd and every API server carry them all


class Because(StrEnum):
    """Why an authority is added, dropped or about to leave."""

    SERVED = "it verifies the certificate that servers mount"
    NEXT = "it verifies the certificate that comes next"
    WAS_SERVED = "a server may still serve what it verifies"
    EXPIRED = "it has expired"
    RETIRED = "no server can serve a certificate of its any more"
    TOO_MANY = f"there are more than {OTHERS_AT_MOST} that verify nothing we know"


class Change(Struct, frozen=True, omit_defaults=True):
    """One authority, and why it is added, dropped or marked. `until`: when it will leave."""

    authority: str
    because: Because
    until: datetime | None = None


class NeedObjects(Struct, frozen=True, kw_only=True):
    """What the Secret asks of the bundle.

    `needed`: what verifies its pairs. `previous`: what was published when a pair was last staged or put in place, and
    may still be served; `placed_at`: since when they may reload. `someone_serves`: the current pair is one that servers
    take; where it is not, they may serve any.
    """

    needed: Mapping[x509.Certificate, Because]
    previous: Sequence[x509.Certificate] = ()
    placed_at: datetime | None = None
    someone_serves: bool = True


class Bundle(Struct, frozen=True, kw_only=True):
    """What the caBundle of every webhook should be, and how that differs from what is there.

    `tidied`: something is there that is no certificate, or is there twice. `next_change`: when an authority is to go.
    """

    authorities: tuple[x509.Certificate, ...]
    marks: Mapping[str, Mark]
    differs: bool
    added: tuple[Change, ...]
    dropped: tuple[Change, ...]
    leaving: tuple[Change, ...]
    tidied: bool
    next_change: datetime | None

    @property
    def mends(self) -> bool:
        """It puts right what nobody has planned."""
        return self.tidied or any(each.because is not Because.NEXT for each in self.added)

    @property
    def text(self) -> bytes:
        """The PEM of it."""
        return pki.pem(self.authorities)


class _Rules(Struct, frozen=True):
    needs: NeedObjects
    retire: timedelta
    now: datetime
    everywhere: frozenset[x509.Certificate]
    somewhere: frozenset[x509.Certificate]

    def fate(self, authority: x509.Certificate, mark: Mark | None) -> Mark | Because:
        """The mark with which it is carried, or why it is not. A mark of a time to come is somebody's wrong clock."""
        if mark and mark.since > self.now:
            mark = None
        role = mark.role if mark else None
        needed = authority in self.needs.needed
        if not needed and self.now >= authority.not_valid_after_utc:
            return Because.EXPIRED
        if needed or not self.needs.someone_serves:
            stays = mark and role is Role.NEEDED and authority in self.everywhere
            return mark if mark and stays else Mark(Role.NEEDED, self.now)
        if authority not in self.somewhere:
            mark, role = Mark(Role.LEAVING, self.needs.placed_at or self.now), Role.LEAVING
        if not mark or role is Role.NEEDED:
            return Mark(Role.LEAVING, self.now)
        return Because.RETIRED if self.now >= mark.since + self.retire else mark


def plan(configuration: Configuration, needs: NeedObjects, retire: timedelta, now: datetime) -> Bundle:
    """The bundle as it should be now."""
    read = [pki.certificates(hook.bundle) for hook in configuration.hooks]
    there = list(dict.fromkeys(authority for authorities in read for authority in authorities))
    everywhere = frozenset(each for each in there if all(each in authorities for authorities in read))
    rules = _Rules(needs, retire, now, everywhere, frozenset(there))
    candidates = dict.fromkeys([*there, *needs.needed, *needs.previous])
    fates = {each: rules.fate(each, configuration.marks.get(pki.fingerprint(each))) for each in candidates}
    for excess in _excess(
        [each for each, fate in fates.items() if isinstance(fate, Mark) and each not in needs.needed]
    ):
        fates[excess] = Because.TOO_MANY
    carried = {each: fate for each, fate in fates.items() if isinstance(fate, Mark)}
    marks = {pki.fingerprint(each): mark for each, mark in carried.items()}
    text = pki.pem(carried)
    return Bundle(
        authorities=tuple(carried),
        marks=marks,
        differs=marks != configuration.marks or any(hook.bundle != text for hook in configuration.hooks),
        added=tuple(
            Change(pki.fingerprint(each), needs.needed.get(each, Because.WAS_SERVED))
            for each in carried
            if each not in everywhere
        ),
        dropped=tuple(
            Change(pki.fingerprint(each), fate)
            for each, fate in fates.items()
            if isinstance(fate, Because) and each in rules.somewhere
        ),
        leaving=tuple(
            Change(pki.fingerprint(each), Because.WAS_SERVED, mark.since + retire)
            for each, mark in carried.items()
            if mark.role is Role.LEAVING and configuration.marks.get(pki.fingerprint(each)) != mark
        ),
        tidied=any(
            hook.bundle and hook.bundle != pki.pem(dict.fromkeys(authorities))
            for hook, authorities in zip(configuration.hooks, read, strict=True)
        ),
        next_change=min(_ends(carried, needs, retire), default=None),
    )


def _excess(others: Sequence[x509.Certificate]) -> Iterable[x509.Certificate]:
    """What goes where there are too many: the oldest."""
    newest_first = sorted(others, key=lambda authority: authority.not_valid_before_utc, reverse=True)
    return newest_first[OTHERS_AT_MOST:]


def _ends(carried: Mapping[x509.Certificate, Mark], needs: NeedObjects, retire: timedelta) -> Iterable[datetime]:
    for authority, mark in carried.items():
        if mark.role is Role.LEAVING:
            yield mark.since + retire
        if authority not in needs.needed:
            yield authority.not_valid_after_utc
