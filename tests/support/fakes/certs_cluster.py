"""The two objects that the certificates' keeper reads and writes, in memory, as an API server would hold them."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from certs.rotation import plan, state
from certs.rotation.change import Change, CreateSecret, PatchSecret, change
from certs.rotation.plan import Policy
from certs.rotation.state import CURRENT_KEYS, NEXT_KEYS, PLACED_AT, State
from certs.x509 import pki
from certs.x509.pki import Pair

NOW: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
DAY: Final = timedelta(days=1)
NAMES: Final = pki.service_names("kubevirt-coschedule", "kubevirt-coschedule", "cluster.local")
POLICY: Final = Policy(
    names=NAMES,
    lifetime=30 * DAY,
    renew_before=10 * DAY,
    propagation=timedelta(minutes=2),
    retire=timedelta(hours=1),
)


class Conflict(Exception):
    """The resourceVersion is not the one that is there."""


def pair(*, at: datetime = NOW, lifetime: timedelta = POLICY.lifetime, names: Sequence[str] = NAMES) -> Pair:
    """A pair as the keeper made it at that time."""
    return pki.issue(names, now=at, lifetime=lifetime)


def authority(issued: Pair) -> str:
    """What the authority of a pair is called in notes."""
    return pki.fingerprint(pki.certificates(issued.authority)[0])


def secret(
    current: Pair | None = None,
    following: Pair | None = None,
    *,
    previous: bytes = b"",
    placed_at: datetime | None = None,
) -> dict[str, Any]:
    """The Secret with these pairs."""
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
    """The configuration with a webhook for each bundle, and a field on each that the keeper knows nothing of."""
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

    def state(self) -> State:
        """What a keeper reads now."""
        found = state.read_secret(copy.deepcopy(self.secret)) if self.secret else None
        return State(found, state.read_configuration(copy.deepcopy(self.configuration)))

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
        """Somebody's edit, as `kubectl replace` or delete makes it."""
        self.secret = self._stored(copy.deepcopy(new)) if new else None

    def edit_configuration(self, new: dict[str, Any]) -> None:
        """As edit_secret."""
        self.configuration = self._stored(copy.deepcopy(new))

    @property
    def served(self) -> Pair:
        """The pair that servers mount."""
        seen = self.state().secret
        return seen.current if seen else Pair()

    @property
    def bundles(self) -> list[bytes]:
        """The caBundle of each webhook."""
        return [hook.bundle for hook in self.state().configuration.hooks]

    def _patched(self, old: dict[str, Any] | None, body: Mapping[str, Any]) -> dict[str, Any]:
        if old is None or body["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"]:
            raise Conflict
        return self._stored(merge_patch(old, body))

    def _stored(self, new: dict[str, Any]) -> dict[str, Any]:
        self._version += 1
        new["metadata"]["resourceVersion"] = str(self._version)
        return new


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def next_change(seen: State, now: datetime) -> Change:
    """What a keeper would write."""
    step = plan.next_step(seen, POLICY, now)
    assert not isinstance(step, plan.Wait), step
    return change(step, seen, POLICY, now)
