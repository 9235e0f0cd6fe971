"""The installed webhook, with the fields that the commands read of it: its configuration, and its pods."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from webhook.core.api.meta import ObjectMeta, Present

CONFIGURATION: Final = "kubevirt-coschedule"
"""The name of the MutatingWebhookConfiguration (manifests/install.yaml)."""
POD_LABELS: Final = {"app.kubernetes.io/name": "kubevirt-coschedule", "app.kubernetes.io/component": "webhook"}
"""The labels of the webhook's pods (manifests/install.yaml)."""


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


class EnvVar(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """v1.EnvVar. A value from another object (`value_from`) is not known here."""

    name: str | None = None
    value: str | None = None
    value_from: Present | None = None


class ServeContainer(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """v1.Container, as far as it says with which settings the webhook runs."""

    command: list[str] | None = None
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    env_from: list[Present] | None = None

    @property
    def words(self) -> list[str]:
        """The words of the command line; the image may name the program before them."""
        return [*(self.command or ()), *(self.args or ())]

    @property
    def serves(self) -> bool:
        """Whether the container runs `serve`."""
        return "serve" in self.words


class ServePodSpec(Struct, frozen=True, kw_only=True):
    """v1.PodSpec of a webhook pod, in part."""

    containers: list[ServeContainer] | None = None


class ServePodStatus(Struct, frozen=True, kw_only=True):
    """v1.PodStatus of a webhook pod, in part."""

    phase: str | None = None


class ServePod(Struct, frozen=True, kw_only=True):
    """A pod of the webhook. No other pod is read with its environment."""

    metadata: ObjectMeta
    spec: ServePodSpec = ServePodSpec()
    status: ServePodStatus | None = None

    @property
    def runs(self) -> bool:
        """Whether the pod runs, and does not end."""
        return bool(self.status and self.status.phase == "Running") and not self.metadata.deletion_timestamp

    @property
    def containers(self) -> list[ServeContainer]:
        """Its containers that run `serve`."""
        return [each for each in self.spec.containers or () if each.serves]
