"""The write that a step needs. Pure, except for the randomness of new keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, assert_never

from msgspec import Struct

from certs.rotation import state
from certs.rotation.plan import Create, Issue, Promote, Publish, RotationPolicy, Stage, Unstage, Write
from certs.rotation.state import ClusterState
from certs.x509 import pki


class CreateSecret(Struct, frozen=True):
    """Create the Secret, empty, so that it overwrites nothing if another client creates it at the same time."""


class PatchSecret(Struct, frozen=True):
    """A JSON merge patch of the Secret, for one resourceVersion."""

    body: Mapping[str, Any]

    def __repr__(self) -> str:
        return "PatchSecret(...)"  # the body has a private key


class PatchConfiguration(Struct, frozen=True):
    """A JSON merge patch of the webhook configuration, for one resourceVersion."""

    body: Mapping[str, Any]


Change = CreateSecret | PatchSecret | PatchConfiguration


def change_for(step: Write, seen: ClusterState, policy: RotationPolicy, now: datetime) -> Change:
    """Return the change that takes a step, which was planned from `seen`."""
    if isinstance(step, Publish):
        return PatchConfiguration(state.configuration_patch(seen.configuration, step.bundle.text, step.bundle.marks))
    if seen.secret is None or isinstance(step, Create):
        return CreateSecret()
    match step:
        case Issue():
            pair = pki.issue(policy.names, now=now, lifetime=policy.lifetime)
            return PatchSecret(state.secret_patch(seen.secret, current=pair, placed_at=now))
        case Stage(previous=previous):
            pair = pki.issue(policy.names, now=now, lifetime=policy.lifetime)
            return PatchSecret(state.secret_patch(seen.secret, following=pair, previous=pki.pem(previous)))
        case Unstage():
            return PatchSecret(state.secret_patch(seen.secret))
        case Promote(previous=previous):
            return PatchSecret(
                state.secret_patch(seen.secret, current=seen.secret.next, previous=pki.pem(previous), placed_at=now)
            )
        case _:
            assert_never(step)
