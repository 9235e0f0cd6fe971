"""The certificate controller's objects in memory, as an API server keeps them, and its plan at the times of a test."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from support.fakes import certs_cluster

from certs import pki, plan, state
from certs.pki import Authority, Pair
from certs.plan import NewAuthority, Publish, RotationHistory, RotationPolicy, RotationStep, WaitUntil, Write
from certs.state import KEYS, ClusterState, Secret

NOW: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
DAY: Final = timedelta(days=1)
NAMES: Final = pki.service_names("kubevirt-coschedule", "kubevirt-coschedule", "cluster.local")
POLICY: Final = RotationPolicy(
    names=NAMES,
    lifetime=30 * DAY,
    renew_before=10 * DAY,
    propagation=timedelta(minutes=2),
    retire=timedelta(hours=1),
    authority_lifetime=90 * DAY,
)


class Conflict(Exception):
    """The resourceVersion is not the current one."""


def made(*, at: datetime = NOW) -> Authority:
    """Return an authority as the controller makes it at that time."""
    return pki.new_authority(now=at, lifetime=POLICY.authority_lifetime)


def pair(
    *,
    at: datetime = NOW,
    lifetime: timedelta = POLICY.lifetime,
    names: Sequence[str] = NAMES,
    of: Authority | None = None,
) -> Pair:
    """Return a pair as the controller issues it at that time; by default of an authority that expires with it."""
    return pki.issue(of or pki.new_authority(now=at, lifetime=lifetime), names, now=at, lifetime=lifetime)


def secret(held: Pair | None = None, **more: bytes) -> dict[str, Any]:
    """Return a Secret with this pair, and with more values."""
    files = (held.certificate, held.key, held.authority) if held else (b"", b"", b"")
    values = dict(zip(KEYS, files, strict=True)) | more
    return {
        "metadata": {"resourceVersion": "1", "annotations": {}},
        "data": {key: base64.b64encode(value).decode() for key, value in values.items() if value},
    }


def configuration(*bundles: bytes) -> dict[str, Any]:
    """Return the configuration with a webhook for each bundle, each with a field that the controller does not know."""
    return {
        "metadata": {"name": "kubevirt-coschedule", "resourceVersion": "1"},
        "webhooks": [
            {
                "name": f"hook-{index}",
                "timeoutSeconds": 3,
                "clientConfig": {
                    "service": {"name": "kubevirt-coschedule"},
                    **({"caBundle": base64.b64encode(bundle).decode()} if bundle else {}),
                },
            }
            for index, bundle in enumerate(bundles)
        ],
    }


class MemoryCluster:
    """The objects, with an API server's rules for a write: for one resourceVersion."""

    def __init__(
        self, served: dict[str, Any] | None, configuration: dict[str, Any], authority: dict[str, Any] | None = None
    ) -> None:
        self.secrets = {"served": served, "authority": authority}
        self.configuration = configuration
        self.writes: list[Write] = []
        self._version = 1

    def state(self) -> ClusterState:
        """Return what a controller reads now."""
        served, authority = (
            state.read_secret(copy.deepcopy(held)) if held else Secret() for held in self.secrets.values()
        )
        return ClusterState(
            served=served,
            authority=authority,
            configuration=state.read_configuration(copy.deepcopy(self.configuration)),
        )

    def apply(self, step: Write, seen: ClusterState, now: datetime) -> None:
        """Take a step.

        Raises:
            Conflict: it is for another resourceVersion, or creates what exists.
        """
        if isinstance(step, Publish):
            body = state.configuration_patch(seen.configuration, pki.pem(step.authorities))
            self.configuration = self._patched(self.configuration, body)
        else:
            which = "authority" if isinstance(step, NewAuthority) else "served"
            self.put(which, getattr(seen, which).version, plan.new_pair(step, POLICY, now))
        self.writes.append(step)

    def put(self, which: str, version: str | None, pair: Pair) -> None:
        """Write a pair into a Secret, for one resourceVersion; None creates the Secret."""
        if version is not None:
            self.secrets[which] = self._patched(self.secrets[which], state.secret_patch(version, pair))
        elif self.secrets[which]:
            raise Conflict
        else:
            self.secrets[which] = self._stored(state.new_secret("/namespaces/x/secrets/y", pair))

    def edit_secret(self, which: str, new: dict[str, Any] | None) -> None:
        """Apply a user's edit, as `kubectl replace` or delete makes it."""
        self.secrets[which] = self._stored(copy.deepcopy(new)) if new else None

    def edit_configuration(self, new: dict[str, Any]) -> None:
        """As edit_secret."""
        self.configuration = self._stored(copy.deepcopy(new))

    @property
    def served(self) -> Pair:
        """Return the pair that servers mount."""
        return self.state().served.pair

    @property
    def bundles(self) -> list[bytes]:
        """Return the caBundle of each webhook."""
        return list(self.state().configuration.bundles)

    def _patched(self, old: dict[str, Any] | None, body: Mapping[str, Any]) -> dict[str, Any]:
        if old is None or body["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"]:
            raise Conflict
        return self._stored(merge_patch(old, body))

    def _stored(self, new: dict[str, Any]) -> dict[str, Any]:
        self._version += 1
        new["metadata"]["resourceVersion"] = str(self._version)
        return new


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def take_next(cluster: MemoryCluster, now: datetime) -> None:
    """Take the step that a controller that just started would take."""
    seen = cluster.state()
    step = plan.next_step(seen, RotationHistory(), POLICY, now)
    assert not isinstance(step, plan.WaitUntil), step
    cluster.apply(step, seen, now)


OURS: Final = certs_cluster.made()
FRESH: Final = certs_cluster.pair(of=OURS)
OLD: Final = certs_cluster.pair(at=NOW - 21 * DAY)  # of another authority, and due since a day
STRANGER: Final = certs_cluster.pair()
EXPIRED: Final = certs_cluster.pair(at=NOW - 40 * DAY)
WRONG_KEY: Final = Pair(FRESH.certificate, STRANGER.key, FRESH.authority)


class Watched:
    """A cluster, and a controller that has watched it from its start."""

    def __init__(self, served: Pair | None, *bundles: bytes, of: Authority | None = OURS) -> None:
        held = secret(of.pair) if of else None
        self.cluster = MemoryCluster(secret(served) if served else None, configuration(*bundles), held)
        self.history = RotationHistory()

    def step(self, now: datetime = NOW) -> RotationStep:
        """What it would do now."""
        return plan.next_step(self.cluster.state(), self.history, POLICY, now)

    def until_waiting(self, now: datetime = NOW) -> tuple[list[type], WaitUntil]:
        """What it does now until it waits, and that wait."""
        taken: list[type] = []
        while not isinstance(wanted := self.step(now), WaitUntil):
            assert len(taken) < 9, taken
            taken.append(type(wanted))
            self.cluster.apply(wanted, self.cluster.state(), now)
        return taken, wanted


def published(*pairs: Pair) -> bytes:
    """A bundle of the authorities of these pairs."""
    return b"".join(pair.authority for pair in pairs)
