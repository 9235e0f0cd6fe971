"""The two objects that the certificate controller reads and writes, in memory, with the rules of an API server."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from certs.rotation import plan, state
from certs.rotation.change import Change, CreateSecret, PatchSecret, change_for
from certs.rotation.plan import RotationPolicy
from certs.rotation.state import CURRENT_KEYS, NEXT_KEYS, PLACED_AT, ClusterState
from certs.x509 import pki
from certs.x509.pki import Pair

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
)


class Conflict(Exception):
    """The resourceVersion is not the current one."""


def pair(*, at: datetime = NOW, lifetime: timedelta = POLICY.lifetime, names: Sequence[str] = NAMES) -> Pair:
    """Return a pair as the controller issues it at that time."""
    return pki.issue(names, now=at, lifetime=lifetime)


def authority(issued: Pair) -> str:
    """Return the name of a pair's authority in the marks."""
    return pki.short_fingerprint(pki.read_certificates(issued.authority)[0])


def secret(
    current: Pair | None = None,
    following: Pair | None = None,
    *,
    previous: bytes = b"",
    placed_at: datetime | None = None,
) -> dict[str, Any]:
    """Return the Secret with these pairs."""
    values = dict(zip(CURRENT_KEYS, _files(current), strict=True)) | dict(
        zip(NEXT_KEYS, _files(following), strict=True)
    )
    values["previous-ca.crt"] = previous
    annotations = {PLACED_AT: placed_at.isoformat()} if placed_at else {}
    return {
        "metadata": {"name": "kubevirt-coschedule-tls", "resourceVersion": "1", "annotations": annotations},
        "data": {key: base64.b64encode(value).decode() for key, value in values.items() if value},
    }


def configuration(*bundles: bytes, marks: str = "") -> dict[str, Any]:
    """Return the configuration with a webhook for each bundle, each with a field that the controller does not know."""
    return {
        "metadata": {
            "name": "kubevirt-coschedule",
            "resourceVersion": "1",
            "annotations": {state.MARKS: marks} if marks else {},
        },
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


def _files(pair: Pair | None) -> tuple[bytes, bytes, bytes]:
    return (pair.certificate, pair.key, pair.authority) if pair else (b"", b"", b"")


class MemoryCluster:
    """Both objects, with an API server's rules for a write: a JSON merge patch, for one resourceVersion."""

    def __init__(self, secret: dict[str, Any] | None, configuration: dict[str, Any]) -> None:
        self.secret, self.configuration = secret, configuration
        self.writes: list[Change] = []
        self._version = 1

    def state(self) -> ClusterState:
        """Return what a controller reads now."""
        found = state.read_secret(copy.deepcopy(self.secret)) if self.secret else None
        return ClusterState(found, state.read_configuration(copy.deepcopy(self.configuration)))

    def apply(self, written: Change) -> None:
        """One write.

        Raises:
            Conflict: it is for another resourceVersion.
        """
        if isinstance(written, CreateSecret):
            self.secret = self.secret or self._stored({"metadata": {"name": "kubevirt-coschedule-tls"}})
        elif isinstance(written, PatchSecret):
            self.secret = self._patched(self.secret, written.body)
        else:
            self.configuration = self._patched(self.configuration, written.body)
        self.writes.append(written)

    def edit_secret(self, new: dict[str, Any] | None) -> None:
        """Apply a user's edit, as `kubectl replace` or delete makes it."""
        self.secret = self._stored(copy.deepcopy(new)) if new else None

    def edit_configuration(self, new: dict[str, Any]) -> None:
        """As edit_secret."""
        self.configuration = self._stored(copy.deepcopy(new))

    @property
    def served(self) -> Pair:
        """Return the pair that servers mount."""
        seen = self.state().secret
        return seen.current if seen else Pair()

    @property
    def bundles(self) -> list[bytes]:
        """Return the caBundle of each webhook."""
        return [hook.bundle for hook in self.state().configuration.webhooks]

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


def next_change(seen: ClusterState, now: datetime) -> Change:
    """Return what a controller would write."""
    step = plan.next_step(seen, POLICY, now)
    assert not isinstance(step, plan.WaitUntil), step
    return change_for(step, seen, POLICY, now)
