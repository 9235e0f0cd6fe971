"""The configuration of the installed webhook, with the fields that the commands read of it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from webhook.core.api.meta import ObjectMeta

CONFIGURATION: Final = "kubevirt-coschedule"
"""The name of the MutatingWebhookConfiguration (manifests/base/webhook.yaml)."""


class Service(Struct, frozen=True):
    """ServiceReference: the namespace of the webhook that the API server calls."""

    namespace: str | None = None


class ClientConfig(Struct, frozen=True):
    """WebhookClientConfig, in part."""

    service: Service | None = None


class Webhook(Struct, rename="camel", frozen=True):
    """MutatingWebhook, in part."""

    name: str | None = None
    client_config: ClientConfig | None = None


class WebhookConfiguration(Struct, rename="camel", frozen=True, kw_only=True):
    """MutatingWebhookConfiguration: the annotations, and the webhook that the API server calls."""

    metadata: ObjectMeta
    webhooks: list[Webhook] | None = None
