"""Which authorities a caBundle has: the rules by which an authority enters and leaves it.

Invariant: while a Secret needs an authority, the bundle has it. Every other authority in the bundle stays until it
expires, but at most for `retire` after it was first seen unneeded.

Why an unneeded authority stays for that time: servers may still serve an older pair of it, also one that a user deleted
or restored. Why it leaves then: a server with a certificate of that authority could answer in place of the webhook.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain

from cryptography import x509
from msgspec import Struct

from certs.rotation.state import Configuration
from certs.x509 import pki


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
    added: tuple[x509.Certificate, ...]
    dropped: tuple[x509.Certificate, ...]
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
    configuration: Configuration,
    needs: tuple[x509.Certificate, x509.Certificate | None],
    history: BundleHistory,
    retire: timedelta,
    now: datetime,
) -> Bundle:
    """Return the bundle as it should be now, and note in `history` what it is.

    `needs`: the authority that issues certificates, and the one that verifies the current pair. The second is None if
    that pair can't be served: servers may then serve any older pair.
    """
    needed, serves = dict.fromkeys(each for each in needs if each), needs[1] is not None
    read = [pki.read_certificates(webhook.bundle) for webhook in configuration.webhooks]
    existing = dict.fromkeys(chain.from_iterable(read))
    history.observe(read, needed if serves else existing, now)
    leaving = {each: history.leaves_at(each, retire) for each in existing if each not in needed}
    carried = tuple(each for each in {**existing, **needed} if each not in leaving or now < leaving[each])
    return Bundle(
        authorities=carried,
        differs=any(webhook.bundle != pki.pem(carried) for webhook in configuration.webhooks),
        added=tuple(each for each in needed if each not in history.published),
        dropped=tuple(each for each in leaving if each not in carried),
        next_change=min((end for end in leaving.values() if end > now), default=None),
    )
