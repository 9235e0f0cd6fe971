"""A step as the write that makes it so. Pure but for the randomness of new keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, assert_never

from msgspec import Struct

from certs.rotation import state
from certs.rotation.plan import Create, Issue, Policy, Promote, Publish, Stage, Unstage, Write
from certs.rotation.state import State
from certs.x509 import pki


class CreateSecret(Struct, frozen=True):
    """Make the Secret where there is none; an empty one, so that nothing of anybody's can be overwritten."""


class PatchSecret(Struct, frozen=True):
    """A JSON merge patch, for one resourceVersion."""

    body: Mapping[str, Any]

    def __repr__(self) -> str:
        return "PatchSecret(...)"  # there is a key in it


class PatchConfiguration(Struct, frozen=True):
    """A JSON merge patch, for one resourceVersion."""

    body: Mapping[str, Any]


Change = CreateSecret | PatchSecret | PatchConfiguration


def change(step: Write, seen: State, policy: Policy, now: datetime) -> Change:
    """What to write, for a step that was planned from `seen`."""
    if isinstance(step, Publish):
        return PatchConfiguration(state.configuration_change(seen.configuration, step.bundle.text, step.bundle.marks))
    if seen.secret is None or isinstance(step, Create):
        return CreateSecret()
    match step:
        case Issue():
            pair = pki.issue(policy.names, now=now, lifetime=policy.lifetime)
            return PatchSecret(state.secret_change(seen.secret, current=pair, placed_at=now))
        case Stage(previous=previous):
            pair = pki.issue(policy.names, now=now, lifetime=policy.lifetime)
            return PatchSecret(state.secret_change(seen.secret, following=pair, previous=pki.pem(previous)))
        case Unstage():
            return PatchSecret(state.secret_change(seen.secret))
        case Promote(previous=previous):
            return PatchSecret(
                state.secret_change(seen.secret, current=seen.secret.next, previous=pki.pem(previous), placed_at=now)
            )
        case _:
            assert_never(step)
