"""What to do next, from what the cluster shows: one step with its reason. Nothing is remembered between two steps.

Pure. A rotation, each line one write, each from a state that the line before it leaves behind:

    stage    the next pair into the Secret, beside the current one       servers do not look at it
    publish  its authority into the bundle, which is then read back      both authorities are carried
             wait until every API server has seen that                   `propagation`
    promote  the next pair becomes the current one, in one write         servers reload; either pair is trusted
    publish  the old authority is marked as leaving
             wait until no server can still serve its certificate        `retire`
    publish  without it

Why the next pair is staged where it will be served from, and not kept in memory until its authority is known: a keeper
may be killed at any point, and the next one goes on from there, with the same pair; two keepers work on one pair, not
on two. The staged key lies where the current one does, for the same readers.

Where nobody can be serving (no pair that servers take, and no authority in the bundle that has not expired), there is
nothing to wait for: the first pair is put in place at once. It goes before its authority does, because a kubelet takes
seconds to mount it, and API servers milliseconds to see the bundle; until both are there, calls fail open.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from cryptography import x509
from msgspec import Struct

from certs.rotation import bundle as bundles
from certs.rotation.bundle import Because, Bundle, NeedObjects
from certs.rotation.state import Secret, State
from certs.x509 import pki, verify
from certs.x509.verify import Flaw, Servable


class Policy(Struct, frozen=True, kw_only=True):
    """How long things take, and for which names; `names[0]` is what API servers ask for.

    `renew_before`: a pair is renewed when it has so much of its life left. `propagation`: from a write of the bundle
    until every API server has seen it. `retire`: from a write of the Secret until no server serves what was there.
    """

    names: tuple[str, ...]
    lifetime: timedelta
    renew_before: timedelta
    propagation: timedelta
    retire: timedelta


class Create(Struct, frozen=True):
    """Make the Secret, empty."""

    reason: str


class Issue(Struct, frozen=True):
    """Make a pair, and put it in place at once."""

    reason: str


class Stage(Struct, frozen=True):
    """Make a pair, and put it beside the current one. `previous`: authorities that are published until then."""

    reason: str
    previous: tuple[x509.Certificate, ...]


class Unstage(Struct, frozen=True):
    """Take the next pair away."""

    reason: str


class Publish(Struct, frozen=True):
    """Write the bundle."""

    bundle: Bundle


class Promote(Struct, frozen=True):
    """Put the next pair in the current one's place. `previous`: authorities that are published until then."""

    reason: str
    previous: tuple[x509.Certificate, ...]


class Wait(Struct, frozen=True):
    """Nothing is to be done until then."""

    until: datetime
    reason: str


Write = Create | Issue | Stage | Unstage | Publish | Promote
Step = Write | Wait


class _Seen(Struct, frozen=True):
    """The Secret's two pairs, judged. `due`: why the current one must be replaced."""

    current: Servable | Flaw
    next: Servable | Flaw
    due: str | None

    @property
    def next_authority(self) -> x509.Certificate | None:
        """What verifies the next pair, where there is one that can be served."""
        return self.next.authority if isinstance(self.next, Servable) else None


def next_step(state: State, policy: Policy, now: datetime) -> Step:
    """The one step to take now."""
    if state.secret is None:
        return Create("the Secret is not there")
    seen = _look(state.secret, policy, now)
    bundle = bundles.plan(state.configuration, _needs(state.secret, seen, now), policy.retire, now)
    if bundle.differs:
        return Publish(bundle)
    if not seen.due:
        return _at_rest(state.secret, seen, bundle, policy)
    others = tuple(each for each in bundle.authorities if each != seen.next_authority)
    nobody_serves = isinstance(seen.current, Flaw) and not others
    if isinstance(seen.next, Flaw):
        return Issue(seen.due) if nobody_serves else Stage(seen.due, others)
    seen_everywhere = bundle.marks[pki.fingerprint(seen.next.authority)].since + policy.propagation
    if nobody_serves or now >= seen_everywhere:
        return Promote(seen.due, others)
    return Wait(seen_everywhere, "API servers have to see the next certificate's authority before it is served")


def _look(secret: Secret, policy: Policy, now: datetime) -> _Seen:
    current = verify.examine(secret.current, policy.names, now)
    following = verify.examine(secret.next, policy.names, now)
    due = current.sentence if isinstance(current, Flaw) else _renewal_due(current, policy, now)
    if isinstance(following, Servable) and _ends(following) <= now + policy.propagation + policy.retire:
        following = Flaw("it would expire before it can be replaced")
    return _Seen(current, following, due)


def renewal(pair: Servable, policy: Policy) -> datetime:
    """When a pair is to be renewed."""
    return _ends(pair) - policy.renew_before


def _ends(pair: Servable) -> datetime:
    return min(pair.certificate.not_valid_after_utc, pair.authority.not_valid_after_utc)


def _renewal_due(pair: Servable, policy: Policy, now: datetime) -> str | None:
    if now < renewal(pair, policy):
        return None
    return f"tls.crt is due for renewal: it expires at {verify.timestamp(pair.certificate.not_valid_after_utc)}"


def _needs(secret: Secret, seen: _Seen, now: datetime) -> NeedObjects:
    needed = {}
    if seen.due and seen.next_authority:
        needed[seen.next_authority] = Because.NEXT
    if isinstance(seen.current, Servable):
        needed[seen.current.authority] = Because.SERVED
    serves = isinstance(seen.current, Servable)
    dated = secret.placed_at and secret.placed_at <= now  # from then on they retire
    return NeedObjects(
        needed=needed,
        previous=pki.certificates(secret.previous) if dated or not serves else (),
        placed_at=secret.placed_at,
        someone_serves=serves,
    )


def _at_rest(secret: Secret, seen: _Seen, bundle: Bundle, policy: Policy) -> Step:
    if secret.next:
        return Unstage("the current certificate is good: no next one is needed")
    assert isinstance(seen.current, Servable)  # noqa: S101 - for the type checker: what is not is due
    renew = renewal(seen.current, policy)
    if bundle.next_change and bundle.next_change < renew:
        return Wait(bundle.next_change, "an authority leaves the bundle then")
    return Wait(renew, "the certificate is good until it is renewed")
