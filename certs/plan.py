"""Decides the next step from the state in the cluster: one step with its reason.

One authority issues every certificate, and stays for ten years. So a renewal is one write: a new pair of the same
authority, which every API server trusts already. An authority is replaced if its Secret is removed or damaged, or if
it would expire before a new certificate: append, wait, use, drop. The first line that applies is the next step:

    authority can't issue                                            write a new authority into its Secret
    a bundle lacks an authority that is needed, or has other text    write the bundles, with all authorities
    the pair can't be served, is due, or is of another authority:
        API servers trust the new pair as they trust the old one     write a pair
        every bundle has had the authority for `propagation`         write a pair
        otherwise                                                    wait for that
    the Secret has had pairs of one authority for `retire`           write the bundles, with needed authorities only
    otherwise                                                        wait for the next time of these

The authority that issues is needed, and so is the one that verifies the current pair. The others stay for `retire`,
because servers may still serve an older pair, also one that a user deleted or restored. Then they leave: a server with
a certificate of such an authority could answer in place of the webhook.

A controller can be killed at any point. The next one continues there. The first start waits for nothing: if no pair
can be served, and no other authority is in the bundles, no call can be lost.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from cryptography import x509
from msgspec import Struct

from certs import pki
from certs.pki import Authority, Flaw, Pair, Servable
from certs.state import ClusterState
from webhook.component_base.pem import rfc3339

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
    """Write these authorities into every bundle. `added` and `dropped`: how that differs from the bundles."""

    authorities: tuple[x509.Certificate, ...]
    added: tuple[x509.Certificate, ...]
    dropped: tuple[x509.Certificate, ...]


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


class Seen(Struct):
    """An authority, or None, and since when a process has seen it in its place."""

    authority: x509.Certificate | None
    at: datetime


class RotationHistory:
    """What one process has seen.

    Attributes:
        published: the authority that issues; None if a bundle lacks it.
        served: the authority that verifies the current pair; None if the pair can't be served.
    """

    def __init__(self) -> None:
        self.published: Seen | None = None
        self.served: Seen | None = None
        self._started: datetime | None = None

    def adjust(self, now: datetime, elapsed: timedelta) -> None:
        """Move all times with the clock, if somebody has set it. `elapsed` comes from a clock that never jumps."""
        jump = (now - elapsed) - (self._started or now - elapsed)
        self._started = now - elapsed
        for seen in filter(None, (self.published, self.served)):
            seen.at += jump

    def note(
        self, published: x509.Certificate | None, current: Servable | Flaw, policy: RotationPolicy, now: datetime
    ) -> tuple[datetime, datetime]:
        """Note what the objects are. Return since when they are published and served.

        A process that starts takes the time of issue of the pair, so that no start keeps an authority that has leaked.
        A user may have restored the pair just before the start: so the process also watches it for `propagation`.
        """
        if self.published is None or self.published.authority != published:
            self.published = Seen(published, now)
        served, since = (current.authority, now) if isinstance(current, Servable) else (None, now)
        if self.served is None and isinstance(current, Servable):
            issued = current.certificate.not_valid_before_utc + pki.BACKDATED
            since = min(max(issued, now - policy.retire + policy.propagation), now)
        if self.served is None or self.served.authority != served:
            self.served = Seen(served, since)
        return self.published.at, self.served.at


def next_step(state: ClusterState, history: RotationHistory, policy: RotationPolicy, now: datetime) -> RotationStep:
    """Return the step to take now, and note in `history` what the objects are."""
    authority = _examine_authority(state, policy, now)
    if isinstance(authority, Flaw):
        return NewAuthority(authority.sentence)
    issuing, current = authority.certificate, pki.examine(state.served.pair, policy.names, now)
    bundles = [pki.read_certificates(bundle) for bundle in state.configuration.bundles]
    published = issuing if all(issuing in bundle for bundle in bundles) else None
    published_at, served_at = history.note(published, current, policy, now)

    needed = dict.fromkeys([issuing, current.authority] if isinstance(current, Servable) else [issuing])
    existing = dict.fromkeys(chain.from_iterable(bundles))
    all_stay = isinstance(current, Flaw) or now < served_at + policy.retire
    carried = tuple(each for each in {**existing, **needed} if all_stay or each in needed)
    if any(bundle != pki.pem(carried) for bundle in state.configuration.bundles):
        added = tuple(each for each in carried if any(each not in bundle for bundle in bundles))
        return Publish(carried, added, tuple(each for each in existing if each not in carried))

    due = _why_due(current, authority, policy, now)
    if isinstance(current, Servable) and not due:
        return _at_rest(current, authority, policy, served_at + policy.retire if len(carried) > len(needed) else None)
    trusted_as_widely = current.authority == issuing if isinstance(current, Servable) else carried == (issuing,)
    if trusted_as_widely or now >= published_at + policy.propagation:
        return Issue(due, authority)
    return WaitUntil(
        published_at + policy.propagation,
        "API servers must see the new authority before a certificate of it is served",
    )


def new_pair(step: NewAuthority | Issue, policy: RotationPolicy, now: datetime) -> Pair:
    """Return the pair that a step writes into its Secret. Its key is new at each call."""
    if isinstance(step, NewAuthority):
        return pki.new_authority(now=now, lifetime=policy.authority_lifetime).pair
    return pki.issue(step.authority, policy.names, now=now, lifetime=policy.lifetime)


def _examine_authority(state: ClusterState, policy: RotationPolicy, now: datetime) -> Authority | Flaw:
    authority = pki.examine_authority(state.authority.pair, policy.names, now)
    if isinstance(authority, Flaw) or now < _replaced_at(authority, policy):
        return authority
    end = rfc3339(authority.certificate.not_valid_after_utc)
    return Flaw(f"the authority expires at {end}, before a new certificate would")


def _replaced_at(authority: Authority, policy: RotationPolicy) -> datetime:
    return authority.certificate.not_valid_after_utc - policy.lifetime


def _why_due(current: Servable | Flaw, authority: Authority, policy: RotationPolicy, now: datetime) -> str:
    """Return why the current pair must be replaced; empty if it need not."""
    if isinstance(current, Flaw):
        return current.sentence
    if now >= _renewed_at(current, policy):
        return f"tls.crt is due for renewal: it expires at {rfc3339(current.certificate.not_valid_after_utc)}"
    return "another authority issued tls.crt" if current.authority != authority.certificate else ""


def _renewed_at(pair: Servable, policy: RotationPolicy) -> datetime:
    return min(pair.certificate.not_valid_after_utc, pair.authority.not_valid_after_utc) - policy.renew_before


def _at_rest(pair: Servable, authority: Authority, policy: RotationPolicy, leaves_at: datetime | None) -> WaitUntil:
    waits = [
        WaitUntil(_renewed_at(pair, policy), "the certificate is renewed at that time"),
        WaitUntil(_replaced_at(authority, policy), "the authority is replaced at that time"),
    ]
    if leaves_at:
        waits.append(WaitUntil(leaves_at, "an authority leaves the bundle at that time"))
    return min(waits, key=lambda wait: wait.until)
