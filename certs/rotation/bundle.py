"""Which authorities a caBundle has, and why: the rules by which an authority enters and leaves the bundle.

Pure. Invariant: while a pair in the Secret can be served, its authority is in the bundle. Every other authority in the
bundle stays until it expires, but at most for `retire` after it was first found unneeded.

Why an unknown authority stays for that time: a user can restore or delete the Secret, and servers still serve the pair
in their memory. The controller can't distinguish that pair's authority from an unknown one. Why it leaves then: a
server with a certificate of that authority could answer in place of the webhook.
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

OTHERS_AT_MOST: Final = 32  # a rotation leaves one authority; etcd and every API server store the whole bundle


class ChangeReason(StrEnum):
    """Why an authority is added, dropped, or marked as leaving."""

    SERVED = "it verifies the current certificate"
    NEXT = "it verifies the next certificate"
    WAS_SERVED = "a server may still serve a certificate that it verifies"
    EXPIRED = "it has expired"
    RETIRED = "no server serves a certificate that it verifies any more"
    TOO_MANY = f"there are more than {OTHERS_AT_MOST} authorities that verify no certificate in the Secret"


class AuthorityChange(Struct, frozen=True, omit_defaults=True):
    """One authority, and why it is added, dropped or marked. `until`: when it will leave the bundle."""

    authority: str
    because: ChangeReason
    until: datetime | None = None


class BundleNeeds(Struct, frozen=True, kw_only=True):
    """What the Secret requires of the bundle.

    Attributes:
        needed: the authorities that verify its pairs.
        previous: the authorities that were published when a pair was last staged or promoted. A server may still serve
            a certificate of theirs.
        placed_at: when the current pair was written; servers reload after that.
        someone_serves: whether the current pair can be served. If not, servers may serve any older pair.
    """

    needed: Mapping[x509.Certificate, ChangeReason]
    previous: Sequence[x509.Certificate] = ()
    placed_at: datetime | None = None
    someone_serves: bool = True


class Bundle(Struct, frozen=True, kw_only=True):
    """What the caBundle of every webhook should be, and how that differs from the existing ones.

    Attributes:
        authorities: the certificates of the bundle, in order.
        marks: the role of each, by fingerprint.
        differs: whether the configuration must be written.
        added, dropped, leaving: the authorities that enter, leave, or are marked as leaving.
        tidied: whether an existing bundle has text that is not a certificate, or has a certificate twice.
        next_change: when the next authority leaves; None if none will.
    """

    authorities: tuple[x509.Certificate, ...]
    marks: Mapping[str, Mark]
    differs: bool
    added: tuple[AuthorityChange, ...]
    dropped: tuple[AuthorityChange, ...]
    leaving: tuple[AuthorityChange, ...]
    tidied: bool
    next_change: datetime | None

    @property
    def is_repair(self) -> bool:
        """Whether it corrects a change that the controller did not make."""
        return self.tidied or any(each.because is not ChangeReason.NEXT for each in self.added)

    @property
    def text(self) -> bytes:
        """The bundle as PEM."""
        return pki.pem(self.authorities)


class _Rules(Struct, frozen=True):
    """The rules for one authority. `everywhere`: in all existing bundles; `somewhere`: in at least one."""

    needs: BundleNeeds
    retire: timedelta
    now: datetime
    everywhere: frozenset[x509.Certificate]
    somewhere: frozenset[x509.Certificate]

    def mark_or_reason(self, authority: x509.Certificate, mark: Mark | None) -> Mark | ChangeReason:
        """Return the authority's mark in the bundle, or why it is not in it.

        A mark with a time in the future is ignored: the clock that wrote it was wrong.
        """
        if mark and mark.since > self.now:
            mark = None
        role = mark.role if mark else None
        needed = authority in self.needs.needed
        if not needed and self.now >= authority.not_valid_after_utc:
            return ChangeReason.EXPIRED
        if needed or not self.needs.someone_serves:
            stays = mark and role is Role.NEEDED and authority in self.everywhere
            return mark if mark and stays else Mark(Role.NEEDED, self.now)
        if authority not in self.somewhere:
            mark, role = Mark(Role.LEAVING, self.needs.placed_at or self.now), Role.LEAVING
        if not mark or role is Role.NEEDED:
            return Mark(Role.LEAVING, self.now)
        return ChangeReason.RETIRED if self.now >= mark.since + self.retire else mark


def plan_bundle(configuration: Configuration, needs: BundleNeeds, retire: timedelta, now: datetime) -> Bundle:
    """Return the bundle as it should be now. `retire`: how long an unneeded authority stays."""
    read = [pki.read_certificates(webhook.bundle) for webhook in configuration.webhooks]
    existing = list(dict.fromkeys(authority for authorities in read for authority in authorities))
    everywhere = frozenset(each for each in existing if all(each in authorities for authorities in read))
    rules = _Rules(needs, retire, now, everywhere, frozenset(existing))
    outcomes = _outcomes(configuration, rules, [*existing, *needs.needed, *needs.previous])
    carried = {each: outcome for each, outcome in outcomes.items() if isinstance(outcome, Mark)}
    marks = {pki.short_fingerprint(each): mark for each, mark in carried.items()}
    text = pki.pem(carried)
    return Bundle(
        authorities=tuple(carried),
        marks=marks,
        differs=marks != configuration.marks or any(webhook.bundle != text for webhook in configuration.webhooks),
        added=tuple(
            AuthorityChange(pki.short_fingerprint(each), needs.needed.get(each, ChangeReason.WAS_SERVED))
            for each in carried
            if each not in everywhere
        ),
        dropped=tuple(_dropped(outcomes, rules)),
        leaving=tuple(_leaving(carried, configuration, retire)),
        tidied=any(
            webhook.bundle and webhook.bundle != pki.pem(dict.fromkeys(authorities))
            for webhook, authorities in zip(configuration.webhooks, read, strict=True)
        ),
        next_change=min(_ends(carried, needs, retire), default=None),
    )


def _outcomes(
    configuration: Configuration, rules: _Rules, authorities: Iterable[x509.Certificate]
) -> Mapping[x509.Certificate, Mark | ChangeReason]:
    """Return the mark of each authority that the bundle has, and for the others why it does not."""
    marks = configuration.marks
    outcomes = {each: rules.mark_or_reason(each, marks.get(pki.short_fingerprint(each))) for each in authorities}
    others = [each for each, mark in outcomes.items() if isinstance(mark, Mark) and each not in rules.needs.needed]
    return outcomes | dict.fromkeys(_excess(others), ChangeReason.TOO_MANY)


def _dropped(outcomes: Mapping[x509.Certificate, Mark | ChangeReason], rules: _Rules) -> Iterable[AuthorityChange]:
    for each, outcome in outcomes.items():
        if isinstance(outcome, ChangeReason) and each in rules.somewhere:
            yield AuthorityChange(pki.short_fingerprint(each), outcome)


def _leaving(
    carried: Mapping[x509.Certificate, Mark], configuration: Configuration, retire: timedelta
) -> Iterable[AuthorityChange]:
    for each, mark in carried.items():
        if mark.role is Role.LEAVING and configuration.marks.get(pki.short_fingerprint(each)) != mark:
            yield AuthorityChange(pki.short_fingerprint(each), ChangeReason.WAS_SERVED, mark.since + retire)


def _excess(others: Sequence[x509.Certificate]) -> Iterable[x509.Certificate]:
    """Return the authorities that exceed OTHERS_AT_MOST, the oldest ones."""
    newest_first = sorted(others, key=lambda authority: authority.not_valid_before_utc, reverse=True)
    return newest_first[OTHERS_AT_MOST:]


def _ends(carried: Mapping[x509.Certificate, Mark], needs: BundleNeeds, retire: timedelta) -> Iterable[datetime]:
    for authority, mark in carried.items():
        if mark.role is Role.LEAVING:
            yield mark.since + retire
        if authority not in needs.needed:
            yield authority.not_valid_after_utc
