"""Decides the next step of a rotation from the state in the cluster: one step with its reason. Pure, without memory.

A rotation. Each line is one write, and starts from the state that the line before leaves:

    stage    write the next pair into the Secret, beside the current one    servers do not read it
    publish  add its authority to the bundle, which is then read back       both authorities are in the bundle
             wait until every API server has seen the bundle                `propagation`
    promote  make the next pair the current one, in one write               servers reload; both pairs are trusted
    publish  mark the old authority as leaving
             wait until no server can still serve its certificate           `retire`
    publish  remove it from the bundle

Why the next pair is in the Secret, and not in memory until its authority is known: a controller can be killed at any
point. The next one continues there with the same pair, and two controllers work on one pair instead of two. The staged
key is stored where the current key is, for the same readers.

If no server can be serving, there is nothing to wait for, and the first pair becomes current at once. That is so if the
Secret has no pair that can be served, and the bundle has no authority that is valid. The pair is written before its
authority: a kubelet takes seconds to mount it, API servers milliseconds to see the bundle. Until both are done, calls
fail open.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from cryptography import x509
from msgspec import Struct

from certs.rotation import bundle as bundles
from certs.rotation.bundle import Bundle, BundleNeeds, ChangeReason
from certs.rotation.state import ClusterState, Secret
from certs.x509 import pki, verify
from certs.x509.verify import Flaw, Servable


class RotationPolicy(Struct, frozen=True, kw_only=True):
    """The names and times of a rotation.

    Attributes:
        names: the names of the certificate; API servers ask for the first.
        lifetime: how long a new certificate is valid.
        renew_before: a pair is renewed this long before it expires.
        propagation: the time from a write of the bundle until every API server has seen it.
        retire: the time from a write of the Secret until no server serves the pair before it.
    """

    names: tuple[str, ...]
    lifetime: timedelta
    renew_before: timedelta
    propagation: timedelta
    retire: timedelta


class Create(Struct, frozen=True):
    """Create the Secret, empty."""

    reason: str


class Issue(Struct, frozen=True):
    """Issue a pair, and make it the current one at once."""

    reason: str


class Stage(Struct, frozen=True):
    """Issue a pair, and write it beside the current one. `previous`: the authorities that are published now."""

    reason: str
    previous: tuple[x509.Certificate, ...]


class Unstage(Struct, frozen=True):
    """Remove the next pair."""

    reason: str


class Publish(Struct, frozen=True):
    """Write the bundle."""

    bundle: Bundle


class Promote(Struct, frozen=True):
    """Make the next pair the current one. `previous`: the authorities that are published now."""

    reason: str
    previous: tuple[x509.Certificate, ...]


class WaitUntil(Struct, frozen=True):
    """Do nothing until that time, or until an object changes."""

    until: datetime
    reason: str


Write = Create | Issue | Stage | Unstage | Publish | Promote
RotationStep = Write | WaitUntil


class _Seen(Struct, frozen=True):
    """The Secret's two pairs, examined. `due`: why the current one must be replaced; None if it need not."""

    current: Servable | Flaw
    next: Servable | Flaw
    due: str | None

    @property
    def next_authority(self) -> x509.Certificate | None:
        """The authority of the next pair, if that pair can be served."""
        return self.next.authority if isinstance(self.next, Servable) else None


def next_step(state: ClusterState, policy: RotationPolicy, now: datetime) -> RotationStep:
    """Return the step to take now."""
    if state.secret is None:
        return Create("the Secret does not exist")
    seen = _examine(state.secret, policy, now)
    bundle = bundles.plan_bundle(state.configuration, _needs(state.secret, seen, now), policy.retire, now)
    if bundle.differs:
        return Publish(bundle)
    if not seen.due:
        return _at_rest(state.secret, seen, bundle, policy)
    others = tuple(each for each in bundle.authorities if each != seen.next_authority)
    nobody_serves = isinstance(seen.current, Flaw) and not others
    if isinstance(seen.next, Flaw):
        return Issue(seen.due) if nobody_serves else Stage(seen.due, others)
    seen_everywhere = bundle.marks[pki.short_fingerprint(seen.next.authority)].since + policy.propagation
    if nobody_serves or now >= seen_everywhere:
        return Promote(seen.due, others)
    return WaitUntil(seen_everywhere, "API servers must see the next certificate's authority before it is served")


def _examine(secret: Secret, policy: RotationPolicy, now: datetime) -> _Seen:
    current = verify.examine(secret.current, policy.names, now)
    following = verify.examine(secret.next, policy.names, now)
    due = current.sentence if isinstance(current, Flaw) else _renewal_due(current, policy, now)
    if isinstance(following, Servable) and _ends(following) <= now + policy.propagation + policy.retire:
        following = Flaw("it would expire before it can be replaced")
    return _Seen(current, following, due)


def renewal(pair: Servable, policy: RotationPolicy) -> datetime:
    """Return the time at which a pair is renewed."""
    return _ends(pair) - policy.renew_before


def _ends(pair: Servable) -> datetime:
    return min(pair.certificate.not_valid_after_utc, pair.authority.not_valid_after_utc)


def _renewal_due(pair: Servable, policy: RotationPolicy, now: datetime) -> str | None:
    if now < renewal(pair, policy):
        return None
    return f"tls.crt is due for renewal: it expires at {verify.timestamp(pair.certificate.not_valid_after_utc)}"


def _needs(secret: Secret, seen: _Seen, now: datetime) -> BundleNeeds:
    needed = {}
    if seen.due and seen.next_authority:
        needed[seen.next_authority] = ChangeReason.NEXT
    if isinstance(seen.current, Servable):
        needed[seen.current.authority] = ChangeReason.SERVED
    serves = isinstance(seen.current, Servable)
    dated = secret.placed_at and secret.placed_at <= now  # only then do the previous authorities retire
    return BundleNeeds(
        needed=needed,
        previous=pki.read_certificates(secret.previous) if dated or not serves else (),
        placed_at=secret.placed_at,
        someone_serves=serves,
    )


def _at_rest(secret: Secret, seen: _Seen, bundle: Bundle, policy: RotationPolicy) -> RotationStep:
    if secret.next:
        return Unstage("the current certificate can be served: no next one is needed")
    assert isinstance(seen.current, Servable)  # noqa: S101 - for the type checker: otherwise it would be due
    renew = renewal(seen.current, policy)
    if bundle.next_change and bundle.next_change < renew:
        return WaitUntil(bundle.next_change, "an authority leaves the bundle at that time")
    return WaitUntil(renew, "the certificate is renewed at that time")
