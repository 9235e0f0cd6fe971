"""Decides the next step from the state in the cluster: one step with its reason.

One authority issues every certificate, and stays for ten years. So a renewal is one write: a new pair of the same
authority, which every API server trusts already.

An authority is replaced if its Secret is removed or damaged, or if it would expire before a new certificate. Each line
is one write, and starts from the state that the line before leaves:

    authority    write a new authority into its Secret                      nothing uses it yet
    publish      add it to the bundle, beside the old one                   both authorities are in the bundle
                 wait until every API server has seen the bundle            `propagation`
    certificate  write a pair of the new authority                          servers reload; both pairs are trusted
                 wait until no server can still serve the pair before it    `retire`
    publish      remove the old authority from the bundle

A controller can be killed at any point. The next one continues there, and waits again for what it has not seen. The
first start takes the same steps without the waits: if no pair can be served and no other authority is in the bundle,
no call can be lost.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from certs.rotation import bundle as bundles
from certs.rotation.bundle import Bundle, BundleHistory
from certs.rotation.state import ClusterState
from certs.x509 import pki, verify
from certs.x509.pki import Authority, Pair
from certs.x509.verify import Flaw, Servable

AUTHORITY_LIFETIME: Final = timedelta(days=3650)


class RotationPolicy(Struct, frozen=True, kw_only=True):
    """The names and times of a rotation.

    Attributes:
        names: the names of the certificate; API servers ask for the first.
        lifetime: how long a new certificate is valid.
        renew_before: a pair is renewed this long before it expires.
        propagation: the time from a write of the bundle until every API server has seen it.
        retire: the time from a write of the Secret until no server serves the pair before it.
        authority_lifetime: how long a new authority is valid.
    """

    names: tuple[str, ...]
    lifetime: timedelta
    renew_before: timedelta
    propagation: timedelta
    retire: timedelta
    authority_lifetime: timedelta = AUTHORITY_LIFETIME


class NewAuthority(Struct, frozen=True):
    """Write a new authority into its Secret."""

    reason: str


class Publish(Struct, frozen=True):
    """Write the bundle."""

    bundle: Bundle


class Issue(Struct, frozen=True):
    """Issue a pair of this authority, and make it the current one."""

    reason: str
    authority: Authority


class WaitUntil(Struct, frozen=True):
    """Do nothing until that time, or until an object changes."""

    until: datetime
    reason: str


Write = NewAuthority | Publish | Issue
RotationStep = Write | WaitUntil


def next_step(state: ClusterState, history: BundleHistory, policy: RotationPolicy, now: datetime) -> RotationStep:
    """Return the step to take now, and note in `history` what the bundles are."""
    authority = _examine_authority(state, policy, now)
    if isinstance(authority, Flaw):
        return NewAuthority(authority.sentence)
    current = verify.examine(state.served.pair, policy.names, now)
    served = current.authority if isinstance(current, Servable) else None
    bundle = bundles.plan_bundle(state.configuration, (authority.certificate, served), history, policy.retire, now)
    if bundle.differs:
        return Publish(bundle)
    due = _why_due(current, authority, policy, now)
    if due is None:
        return _at_rest(current, authority, bundle, policy)
    if _is_trusted_as_widely(authority, current, bundle):
        return Issue(due, authority)
    seen_everywhere = history.published.get(authority.certificate, now) + policy.propagation
    if now >= seen_everywhere:
        return Issue(due, authority)
    return WaitUntil(seen_everywhere, "API servers must see the new authority before a certificate of it is served")


def new_pair(step: NewAuthority | Issue, policy: RotationPolicy, now: datetime) -> Pair:
    """Return the pair that a step writes into its Secret. Its key is new at each call."""
    if isinstance(step, NewAuthority):
        return pki.new_authority(now=now, lifetime=policy.authority_lifetime).pair
    return pki.issue(step.authority, policy.names, now=now, lifetime=policy.lifetime)


def _examine_authority(state: ClusterState, policy: RotationPolicy, now: datetime) -> Authority | Flaw:
    authority = verify.examine_authority(state.authority.pair, now)
    if isinstance(authority, Flaw) or now < _replaced_at(authority, policy):
        return authority
    end = verify.timestamp(authority.certificate.not_valid_after_utc)
    return Flaw(f"the authority expires at {end}, before a new certificate would")


def _replaced_at(authority: Authority, policy: RotationPolicy) -> datetime:
    return authority.certificate.not_valid_after_utc - policy.lifetime


def _why_due(current: Servable | Flaw, authority: Authority, policy: RotationPolicy, now: datetime) -> str | None:
    """Return why the current pair must be replaced; None if it need not."""
    if isinstance(current, Flaw):
        return current.sentence
    if now >= _renewed_at(current, policy):
        return f"tls.crt is due for renewal: it expires at {verify.timestamp(current.certificate.not_valid_after_utc)}"
    return "another authority issued tls.crt" if current.authority != authority.certificate else None


def _renewed_at(pair: Servable, policy: RotationPolicy) -> datetime:
    return min(pair.certificate.not_valid_after_utc, pair.authority.not_valid_after_utc) - policy.renew_before


def _is_trusted_as_widely(authority: Authority, current: Servable | Flaw, bundle: Bundle) -> bool:
    """Whether every API server that accepts what servers serve now also accepts a new pair of this authority."""
    if isinstance(current, Servable):
        return current.authority == authority.certificate
    return bundle.authorities == (authority.certificate,)


def _at_rest(current: Servable | Flaw, authority: Authority, bundle: Bundle, policy: RotationPolicy) -> WaitUntil:
    assert isinstance(current, Servable)  # noqa: S101 - for the type checker: otherwise it would be due
    waits = [
        WaitUntil(_renewed_at(current, policy), "the certificate is renewed at that time"),
        WaitUntil(_replaced_at(authority, policy), "the authority is replaced at that time"),
    ]
    if bundle.next_change:
        waits.append(WaitUntil(bundle.next_change, "an authority leaves the bundle at that time"))
    return min(waits, key=lambda wait: wait.until)
