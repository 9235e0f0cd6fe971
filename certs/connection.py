"""The way to an API server: the pod's service account, or a kubeconfig as kubectl takes it."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any, Final

import aiohttp
from kubernetes_asyncio import config
from kubernetes_asyncio.client.api_client import ApiClient
from kubernetes_asyncio.client.configuration import Configuration
from kubernetes_asyncio.config.config_exception import ConfigException
from kubernetes_asyncio.config.incluster_config import SERVICE_TOKEN_FILENAME
from msgspec import Struct
from yaml import YAMLError

from certs.errors import UserError

_SHOWN_CHARS: Final = 200


class BadKubeconfig(UserError):
    """No way to an API server: the kubeconfig or the service account can't be used."""


class Target(Struct, frozen=True, kw_only=True):
    """Which API server, as whom: a kubeconfig and a context of it; None for both is what kubectl would take."""

    kubeconfig: Path | None = None
    context: str | None = None


async def open_client(target: Target) -> ApiClient:
    """A client for the API server; nothing is sent yet.

    Raises:
        BadKubeconfig: there is none that can be used.
    """
    configuration = Configuration()
    named = target.kubeconfig or target.context or os.environ.get("KUBECONFIG")
    try:
        if not named and _is_pod():
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            await _load_kubeconfig(target, configuration)
        # Go's clients do not ask for RFC 5280's finer points (VERIFY_X509_STRICT, on since Python 3.13), and many
        # clusters' certificates do not have them.
        configuration.disable_strict_ssl_verification = True
        client = ApiClient(configuration)
    except (
        ConfigException,
        OSError,
        ssl.SSLError,
        YAMLError,
        KeyError,
        TypeError,
        AttributeError,
        AssertionError,
    ) as error:
        where = target.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        raise BadKubeconfig(
            f"{where}: {_shown(error)}; expected a kubeconfig with a usable context (or a pod's service account)"
        ) from None
    client.user_agent = "kubevirt-coschedule-certs"
    return client


def _is_pod() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and Path(SERVICE_TOKEN_FILENAME).exists()


async def _load_kubeconfig(target: Target, configuration: Configuration) -> Any:
    if target.kubeconfig and not target.kubeconfig.is_file():
        raise ConfigException("no such file")
    return await config.load_kube_config(
        config_file=str(target.kubeconfig) if target.kubeconfig else None,
        context=target.context,
        client_configuration=configuration,
        persist_config=False,
    )


def sentence(error: Exception) -> str:
    """What went wrong on the way, for people."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the API server's certificate is not trusted: {_shown(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"can't connect to {error.host}:{error.port}: {error.os_error.strerror or _shown(error.os_error)}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the API server closed the connection"
    return _shown(error)


def _shown(error: object) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return ascii(text[:_SHOWN_CHARS])[1:-1]
