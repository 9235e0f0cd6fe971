"""Which authorities a caBundle has: the rules by which an authority enters and leaves it.

Invariant: while a Secret needs an authority, the bundle has it. Every other authority in the bundle stays until it
expires, but at most for `retire` after it was first seen unneeded.

Why an unneeded authority stays for that time: servers may still serve an older pair of it, also one that a user deleted
or restored. Why it leaves then: a server with a certificate of that authority could answer in place of the webhook.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import chain

from cryptography import x509
from msgspec import Struct

from certs.rotation.state import Configuration
from certs.x509 import pki


class ChangeReason(StrEnum):
    """Why an authority is added or dropped."""

    ISSUES = "it issues certificates"
    SERVED = "it verifies the current certificate"
    EXPIRED = "it has expired"
    RETIRED = "no server serves a certificate that it verifies any more"


class AuthorityChange(Struct, frozen=True):
    """One authority, and why it is added or dropped."""

    authority: str
    because: ChangeReason


class BundleNeeds(Struct, frozen=True):
    """What the Secrets require of the bundle.

    Attributes:
        needed: the authority that issues certificates, and the one that verifies the current certificate.
        someone_serves: whether the current pair can be served. If not, servers may serve any older pair.
    """

    needed: Mapping[x509.Certificate, ChangeReason]
    someone_serves: bool


class Bundle(Struct, frozen=True, kw_only=True):
    """What the caBundle of every webhook should be, and how that differs from the existing ones.

    Attributes:
        authorities: the certificates of the bundle, in order.
        differs: whether the configuration must be written.
        added, dropped: the authorities that enter and leave.
        next_change: when the next authority leaves; None if none will.
    """

    authorities: tuple[x509.Certificate, ...]
    differs: bool
    added: tuple[AuthorityChange, ...]
    dropped: tuple[AuthorityChange, ...]
    next_change: datetime | None

    @property
    def text(self) -> bytes:
        """The bundle as PEM."""
        return pki.pem(self.authorities)


class BundleHistory:
    """What one process has seen of the bundles.

    A process that starts knows nothing of what was before, and so waits the longer.

    Attributes:
        published: since when every bundle has an authority.
        unneeded: since when an authority is in a bundle, and no Secret needs it.
    """

    def __init__(self) -> None:
        self.published: Mapping[x509.Certificate, datetime] = {}
        self.unneeded: Mapping[x509.Certificate, datetime] = {}

    def observe(
        self, bundles: Sequence[Collection[x509.Certificate]], needed: Collection[x509.Certificate], now: datetime
    ) -> None:
        """Take in the bundles as they are now. A time in the future counts as now: the clock was wrong."""
        existing = set(chain.from_iterable(bundles))
        everywhere = [each for each in existing if all(each in bundle for bundle in bundles)]
        self.published = {each: min(self.published.get(each, now), now) for each in everywhere}
        self.unneeded = {each: min(self.unneeded.get(each, now), now) for each in existing.difference(needed)}

    def leaves_at(self, authority: x509.Certificate, retire: timedelta) -> datetime:
        """Return when an authority that no Secret needs leaves the bundle."""
        end = authority.not_valid_after_utc
        return min(self.unneeded[authority] + retire, end) if authority in self.unneeded else end


def plan_bundle(
    configuration: Configuration, needs: BundleNeeds, history: BundleHistory, retire: timedelta, now: datetime
) -> Bundle:
    """Return the bundle as it should be now, and note in `history` what it is."""
    needed = needs.needed
    read = [pki.read_certificates(webhook.bundle) for webhook in configuration.webhooks]
    existing = dict.fromkeys(chain.from_iterable(read))
    history.observe(read, needed if needs.someone_serves else existing, now)
    leaving = {each: history.leaves_at(each, retire) for each in existing if each not in needed}
    carried = tuple(each for each in {**existing, **needed} if each not in leaving or now < leaving[each])
    return Bundle(
        authorities=carried,
        differs=any(webhook.bundle != pki.pem(carried) for webhook in configuration.webhooks),
        added=tuple(
            AuthorityChange(pki.short_fingerprint(each), because)
            for each, because in needed.items()
            if each not in history.published
        ),
        dropped=tuple(
            AuthorityChange(
                pki.short_fingerprint(each),
                ChangeReason.EXPIRED if now >= each.not_valid_after_utc else ChangeReason.RETIRED,
            )
            for each in leaving
            if each not in carried
        ),
        next_change=min((end for end in leaving.values() if end > now), default=None),
    )
