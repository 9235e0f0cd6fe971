"""kubernetes-asyncio's configuration for an API server: kubeconfig, service account, and proxy of the environment.

What is wrong with them is said in words of our own, which contain nothing secret. The proxy follows
golang.org/x/net/http/httpproxy, which client-go uses. There NO_PROXY can have CIDRs, which aiohttp does not know.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
from kubernetes_asyncio.client.configuration import Configuration
from kubernetes_asyncio.config import load_incluster_config, load_kube_config
from kubernetes_asyncio.config.config_exception import ConfigException
from kubernetes_asyncio.config.incluster_config import SERVICE_TOKEN_FILENAME
from yaml import MarkedYAMLError, YAMLError

from webhook.component_base.client.transport import CONNECT_SECONDS
from webhook.component_base.options import BadKubeconfig, Context, Kubeconfig

_SHOWN_CHARS: Final = 200  # of what a library says
_DEFAULT_FILE: Final = "~/.kube/config"  # kubectl's
_NOT_ONE: Final = "not a kubeconfig as `kubectl config view` prints one, or its context names no user of the file"
_OIDC: Final = "the OIDC token of its user can't be used, and could not be renewed: log in again"
# What the library raises, from the reading of YAML to the request for a new OIDC token.
_LIBRARY_FAILURES: Final = (
    ConfigException,
    OSError,
    YAMLError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    ValueError,
    RuntimeError,
    aiohttp.ClientError,
)
_KINDS: Final[Sequence[tuple[str, str]]] = (
    (r"exec: process returned (\d+)", "its exec plugin ended with exit code {}"),
    (r"exec: ", "its exec plugin gave no credential that can be used"),
    (r"oidc: ", _OIDC),
    (r"File does not exists: (.*)", "it names {}, and there is no such file"),
    (
        r"Invalid kube-config file\. Expected (key current-context|object with name  in .*/contexts list)",
        "it has no current-context: choose one of its contexts by --context",
    ),
    (
        r"Invalid kube-config file\. Expected object with name (.*) in .*/(context|cluster|user)s list",
        "it has no {1} {0}",
    ),
    (r"Token file exists but empty", "the token file of the pod's service account is empty"),
    (r"Service |Cert ", "the pod's service account has no usable files"),
)
"""How the library's messages begin, and what is said instead: they can contain what a plugin or a server wrote."""


async def load_kubeconfig(kubeconfig: Kubeconfig) -> tuple[Configuration, Context]:
    """The configuration for a client, and where it leads.

    The service account is taken where this process runs as a pod and nobody names a kubeconfig; otherwise kubectl's
    rules hold. A pod reaches its API server without a proxy.

    Raises:
        BadKubeconfig: there is none that can be used.
    """
    configuration = Configuration()
    named = kubeconfig.file or kubeconfig.context or os.environ.get("KUBECONFIG")
    try:
        if not named and _is_pod():
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
            context = Context(namespace=_account_namespace(), in_pod=True)
        else:
            context = await _load_file(kubeconfig, configuration)
            configuration.proxy = configuration.proxy or proxy_of(configuration.host or "")
    except _LIBRARY_FAILURES as error:
        names, problem = _file_names(kubeconfig), _problem(error, kubeconfig)
        raise BadKubeconfig(
            f"{names}: {problem}; expected a kubeconfig with a usable context (or a pod's service account)"
        ) from None
    _refuse_socks(configuration.proxy)
    # Go's clients do not ask for RFC 5280's finer points (VERIFY_X509_STRICT, on since Python 3.13), and many
    # clusters' certificates do not have them.
    configuration.disable_strict_ssl_verification = True
    # Go's clients trim a token file; a blank in a header is refused by aiohttp, as a ValueError.
    configuration.api_key = {name: " ".join(value.split()) for name, value in configuration.api_key.items()}
    return configuration, context


def request_error(error: Exception) -> str:
    """Return why a request failed, in words without anything secret."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"can't connect in {CONNECT_SECONDS:g} s"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the API server's certificate is not trusted: {one_line(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientSSLError):
        return f"no TLS with {error.host}:{error.port}: {one_line(error.os_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0  # asyncio's own words repeat the address; a resolver's number is negative
        why = os.strerror(number) if number > 0 else one_line(error.os_error.strerror or error.os_error)
        return f"can't connect to {error.host}:{error.port}: {why}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the API server's answer broke off"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the API server closed the connection"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answered {error.status}"
    if isinstance(error, ConfigException):
        return config_problem(error)
    return f"the connection failed ({type(error).__name__})"


def one_line(error: object) -> str:
    """What a library says, on one line of printable ASCII."""
    text = " ".join(str(error).split()) or type(error).__name__
    return ascii(text[:_SHOWN_CHARS])[1:-1]


def _is_pod() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and Path(SERVICE_TOKEN_FILENAME).exists()


def _account_namespace() -> str | None:
    """The pod's own, as kubectl takes it there."""
    with suppress(OSError):
        return Path(SERVICE_TOKEN_FILENAME).with_name("namespace").read_text(encoding="utf-8").strip() or None
    return None


def _file_names(kubeconfig: Kubeconfig) -> str:
    """The names of the files, as kubectl finds them: one, or several with colons between them."""
    return str(kubeconfig.file) if kubeconfig.file else os.environ.get("KUBECONFIG") or _DEFAULT_FILE


def _existing(kubeconfig: Kubeconfig) -> str:
    """The names of the files. Raises BadKubeconfig if none of the files exists."""
    names = _file_names(kubeconfig)
    if any(Path(name).expanduser().exists() for name in names.split(os.pathsep) if name):
        return names
    raise BadKubeconfig(
        f"{names}: no such file; expected a kubeconfig: name one by --kubeconfig or in the variable KUBECONFIG"
    )


def _problem(error: Exception, kubeconfig: Kubeconfig) -> str:
    """What is wrong with the kubeconfig, in words of our own."""
    if isinstance(error, aiohttp.ClientError):
        return _OIDC  # nothing else asks a server while the file is read
    if isinstance(error, OSError) and error.strerror:
        why = error.strerror[:1].lower() + error.strerror[1:]
        named = str(error.filename or "")
        return f"it names {one_line(named)}: {why}" if named and named not in _file_names(kubeconfig) else why
    if isinstance(error, MarkedYAMLError) and error.problem_mark:
        return f"line {error.problem_mark.line + 1} is not YAML"
    return config_problem(error)


def config_problem(error: Exception) -> str:
    """What is wrong with the credentials, in words of our own, by the kind of the library's message."""
    for pattern, words in _KINDS:
        found = re.match(pattern, str(error))
        if found:
            return one_line(words.format(*found.groups()))
    is_text = isinstance(error, UnicodeDecodeError)  # of the file, as a rule
    return _OIDC if isinstance(error, ValueError) and not is_text else _NOT_ONE


def _refuse_socks(proxy: str | None) -> None:
    """Raise BadKubeconfig for a SOCKS proxy, which would get an HTTP CONNECT."""
    parts = urlsplit(proxy or "")
    if parts.scheme.startswith("socks"):
        raise BadKubeconfig(
            f"{parts.scheme}://{parts.hostname}: a SOCKS proxy can't be used; expected an HTTP proxy "
            "(http://HOST:PORT) in the kubeconfig's proxy-url or in the variable HTTPS_PROXY"
        )


async def _load_file(kubeconfig: Kubeconfig, configuration: Configuration) -> Context:
    names = _existing(kubeconfig)
    loader = await load_kube_config(
        config_file=names,
        context=kubeconfig.context,
        client_configuration=configuration,
        persist_config=False,
    )
    current = loader.current_context or {}
    context: dict[str, Any] = current.get("context") or {}
    return Context(name=current.get("name"), namespace=context.get("namespace"))


_PORTS: Final = {"http": 80, "https": 443}


def proxy_of(url: str) -> str | None:
    """Return the proxy of HTTPS_PROXY or HTTP_PROXY for this URL; None without one, and where NO_PROXY has its host."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    proxy = _variable(f"{parts.scheme}_proxy")
    if not proxy or host == "localhost" or _is_loopback(host):
        return None
    entries = (each.strip().lower() for each in _variable("no_proxy").split(","))
    if any(_has(entry, host, port) for entry in entries if entry):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _variable(name: str) -> str:
    return os.environ.get(name.upper()) or os.environ.get(name) or ""


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _has(entry: str, host: str, port: int) -> bool:
    """Whether an entry of NO_PROXY has this host: `*`, a CIDR, or an address or a domain, with a port or without."""
    if entry == "*":
        return True
    try:
        return ip_address(host) in ip_network(entry, strict=False)  # an address is a network of one
    except ValueError:
        pass
    name, colon, named = entry.rpartition(":")
    if colon and named.isdecimal():
        return int(named) == port and bool(name) and _has(name.strip("[]"), host, port)
    domain = entry.removeprefix("*")
    return host == domain or host.endswith(domain if domain.startswith(".") else f".{domain}")
