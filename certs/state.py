"""The state in the cluster: two Secrets and the MutatingWebhookConfiguration as values, and patches of them.

Pure. A patch names the resourceVersion that it changes: the API server refuses it if another client has written since.

Both Secrets have the keys `tls.crt`, `tls.key` and `ca.crt`. One holds the pair that servers mount. The other holds the
authority that issued it, and no server mounts that one.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, convert

from certs.pki import NO_PAIR, Pair

KEYS: Final = ("tls.crt", "tls.key", "ca.crt")


class Secret(Struct, frozen=True, kw_only=True):
    """A Secret. `version`: its resourceVersion; None if it does not exist."""

    version: str | None = None
    pair: Pair = NO_PAIR


class Configuration(Struct, frozen=True, kw_only=True):
    """The MutatingWebhookConfiguration. `bundles`: the caBundle of each webhook, as PEM. `raw`: the whole object."""

    version: str
    bundles: tuple[bytes, ...]
    raw: Mapping[str, Any]


class ClusterState(Struct, frozen=True, kw_only=True):
    """The objects. `served`: the Secret that servers mount. `authority`: the Secret of the authority."""

    served: Secret = Secret()
    authority: Secret = Secret()
    configuration: Configuration


class _Metadata(Struct, rename="camel"):
    resource_version: str


class _Secret(Struct):
    metadata: _Metadata
    data: dict[str, str] | None = None


class _ClientConfig(Struct, rename="camel"):
    ca_bundle: str | None = None


class _Webhook(Struct, rename="camel"):
    client_config: _ClientConfig


class _Configuration(Struct):
    metadata: _Metadata
    webhooks: list[_Webhook] | None = None


def read_secret(raw: object) -> Secret:
    """Return the Secret of the API server's JSON. A damaged value counts as empty, so that it is repaired.

    Raises:
        msgspec.ValidationError: it is not the JSON of a Secret.
    """
    found = convert(raw, _Secret)
    data = found.data or {}
    return Secret(version=found.metadata.resource_version, pair=Pair(*(_decoded(data.get(key)) for key in KEYS)))


def read_configuration(raw: Mapping[str, Any]) -> Configuration:
    """Return the MutatingWebhookConfiguration of the API server's JSON.

    Raises:
        msgspec.ValidationError: it is not the JSON of one.
    """
    found = convert(raw, _Configuration)
    bundles = tuple(_decoded(webhook.client_config.ca_bundle) for webhook in found.webhooks or ())
    return Configuration(version=found.metadata.resource_version, bundles=bundles, raw=raw)


def new_secret(path: str, pair: Pair) -> dict[str, Any]:
    """Return a Secret with this pair, for the URL path that it will have."""
    *_, namespace, _, name = path.split("/")
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": _data(pair)}


def secret_patch(version: str, pair: Pair) -> dict[str, Any]:
    """Return a JSON merge patch that puts a pair into the Secret of this version."""
    return {"metadata": {"resourceVersion": version}, "data": _data(pair)}


def configuration_patch(configuration: Configuration, bundle: bytes) -> dict[str, Any]:
    """Return a JSON merge patch of the configuration: this bundle (PEM) for each of its webhooks.

    A merge patch replaces a whole list. So it has the webhooks as they were read; the resourceVersion protects them.
    """
    webhooks = configuration.raw.get("webhooks") or ()
    own = {"caBundle": _encoded(bundle)}
    return {
        "metadata": {"resourceVersion": configuration.version},
        "webhooks": [{**webhook, "clientConfig": {**webhook["clientConfig"], **own}} for webhook in webhooks],
    }


def _data(pair: Pair) -> dict[str, str]:
    return dict(zip(KEYS, map(_encoded, (pair.certificate, pair.key, pair.authority)), strict=True))


def _decoded(value: str | None) -> bytes:
    try:
        return base64.b64decode(value or "")
    except ValueError:
        return b""


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()
