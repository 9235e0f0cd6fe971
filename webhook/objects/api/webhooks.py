"""The configuration of the installed webhook, with the fields that the commands read of it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from webhook.core.api.meta import ObjectMeta

CONFIGURATION: Final = "kubevirt-coschedule"
"""The name of the MutatingWebhookConfiguration (manifests/base/webhook.yaml)."""


class Service(Struct, frozen=True):
    """ServiceReference: the path that the API server calls."""

    path: str | None = None


class ClientConfig(Struct, frozen=True):
    """WebhookClientConfig, in part."""

    service: Service | None = None


class Webhook(Struct, rename="camel", frozen=True):
    """MutatingWebhook, in part."""

    name: str | None = None
    client_config: ClientConfig | None = None


class WebhookConfiguration(Struct, rename="camel", frozen=True, kw_only=True):
    """MutatingWebhookConfiguration: the paths that the API server calls."""

    metadata: ObjectMeta
    webhooks: list[Webhook] | None = None

    @property
    def paths(self) -> list[str | None]:
        """The path of each webhook that has one."""
        services = (each.client_config.service for each in self.webhooks or () if each.client_config)
        return [service.path for service in services if service]
