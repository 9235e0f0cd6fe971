"""The proxy of the environment for calls to an API server, as kubectl takes it.

Rules: golang.org/x/net/http/httpproxy, which client-go uses. There NO_PROXY can have CIDRs, which aiohttp
does not know.
"""

from __future__ import annotations

import os
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

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
