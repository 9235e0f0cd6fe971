"""The write that a step needs. Pure, except for the randomness of new keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from certs.rotation import state
from certs.rotation.plan import Issue, NewAuthority, Publish, RotationPolicy, Write
from certs.rotation.state import ClusterState
from certs.x509 import pki
from certs.x509.pki import Pair


class SecretRole(StrEnum):
    """One of the two Secrets."""

    SERVED = "served"
    AUTHORITY = "authority"


class WriteSecret(Struct, frozen=True):
    """Put a pair into a Secret, for one resourceVersion. `version`: None to create the Secret."""

    secret: SecretRole
    version: str | None
    pair: Pair


class PatchConfiguration(Struct, frozen=True):
    """A JSON merge patch of the webhook configuration, for one resourceVersion."""

    body: Mapping[str, Any]


Change = WriteSecret | PatchConfiguration


def change_for(step: Write, seen: ClusterState, policy: RotationPolicy, now: datetime) -> Change:
    """Return the change that takes a step, which was planned from `seen`."""
    match step:
        case Publish(bundle):
            return PatchConfiguration(state.configuration_patch(seen.configuration, bundle.text))
        case NewAuthority():
            authority = pki.new_authority(now=now, lifetime=policy.authority_lifetime)
            return WriteSecret(SecretRole.AUTHORITY, seen.authority.version, authority.pair)
        case Issue(authority=authority):
            pair = pki.issue(authority, policy.names, now=now, lifetime=policy.lifetime)
            return WriteSecret(SecretRole.SERVED, seen.served.version, pair)
