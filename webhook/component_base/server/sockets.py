"""Listening sockets for an address, with enough open files for their connections."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
from contextlib import ExitStack
from typing import Any, Final

from webhook.component_base.errors import UserError
from webhook.component_base.options import Address

_BACKLOG: Final = 512
_FILES: Final = 65_536  # many times what two listeners and the connections to the API server need


class BadAddress(UserError):
    """An address that can't be listened on."""


async def listen(address: Address) -> list[socket.socket]:
    """Return the listening sockets: one for each address of the host. Without a host: for every interface.

    Raises:
        BadAddress: the address is in use, does not belong to this machine, or is not permitted.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(
            address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        return _listen({(family, at) for family, _, _, _, at in found})
    except OSError as error:
        # Python has its own message for an address in use. The message of the errno is the one that people search for.
        what = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise BadAddress(f"can't listen on {address}: {what}; choose another address") from None


def _listen(found: set[tuple[int, Any]]) -> list[socket.socket]:
    with ExitStack() as stack:
        sockets = []
        for family, at in sorted(found):
            try:
                listening = socket.create_server(at, family=family, backlog=_BACKLOG)
            except OSError as error:
                if error.errno == errno.EAFNOSUPPORT:  # a machine without IPv6 can still have names with IPv6 addresses
                    continue
                raise
            listening.settimeout(0)
            sockets.append(stack.enter_context(listening))
        if not sockets:
            raise OSError(errno.EAFNOSUPPORT, "")
        stack.pop_all()
        return sockets


def allow_files() -> None:
    """Raise this process's limit of open files. Containers often start with 1,024, and one listener can use all."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
