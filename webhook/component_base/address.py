"""Address: where a program listens or connects."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_MAX_PORT: Final = 65535
_PORT: Final = re.compile("[0-9]{1,5}")


class Address(NamedTuple):
    """A host and a TCP port; an empty host is every interface."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(text: str) -> Address:
    """`HOST:PORT`, `:PORT` or `[IPV6]:PORT`.

    Raises:
        ValueError: says what was expected.
    """
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or (":" in host and not bracketed) or not _PORT.fullmatch(port) or int(port) > _MAX_PORT:
        raise ValueError(f"expected HOST:PORT, :PORT or [IPV6]:PORT with a port from 0 to {_MAX_PORT}")
    return Address(host[1:-1] if bracketed else host, int(port))
