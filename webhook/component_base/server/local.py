"""Callers of the loopback address, which `kubectl port-forward` reaches, and the names that they may use there.

A website can point its own name at the loopback address of a user's machine (DNS rebinding). The browser then sends
that name in the header Host.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from webhook.component_base.server.application import shown

_LOCAL_NAME: Final = "localhost"


def check_local(request: web.BaseRequest) -> None:
    """Let only callers of the loopback address pass, by one of its names.

    Raises:
        web.HTTPForbidden: the caller is another one.
    """
    address = _called_address(request)
    if not _is_loopback(address):
        text = f"got a connection to {address}, expected one to localhost: kubectl port-forward makes it"
        raise web.HTTPForbidden(text=text)
    check_host(request)


def check_host(request: web.BaseRequest) -> None:
    """Let callers of the loopback address pass by one of its names only, and all callers of another address.

    Raises:
        web.HTTPForbidden: the caller uses a foreign name.
    """
    if not _is_loopback(_called_address(request)):
        return
    try:
        host = urlsplit(f"//{request.host}").hostname or ""
    except ValueError:
        host = ""
    if host != _LOCAL_NAME and not _is_loopback(host):
        text = f"got the name {shown(request.host)}, expected localhost or 127.0.0.1 in the address"
        raise web.HTTPForbidden(text=text)


def _called_address(request: web.BaseRequest) -> str:
    return str(request.transport.get_extra_info("sockname")[0]) if request.transport else ""


def _is_loopback(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
