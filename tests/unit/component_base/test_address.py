"""An address as a user writes it, and as a program shows it."""

from __future__ import annotations

from typing import Final

import pytest

from webhook.component_base.address import address

ADDRESSES: Final = {
    ":9443": ("", 9443),
    "127.0.0.1:0": ("127.0.0.1", 0),
    "[::1]:65535": ("::1", 65535),
    "localhost:80": ("localhost", 80),
    "9443": None,
    "host:": None,
    ":65536": None,
    "::1:80": None,
    "a:": None,
    "a:-1": None,
    "a:65536": None,
    "a:http": None,
    "a:\N{ARABIC-INDIC DIGIT ONE}": None,
    "": None,
}


@pytest.mark.parametrize(("text", "expected"), ADDRESSES.items(), ids=ascii)
def test_an_address_is_host_and_port(text: str, expected: tuple[str, int] | None) -> None:
    """HOST:PORT, :PORT or [IPV6]:PORT, and it is written as it is read."""
    if expected is None:
        with pytest.raises(ValueError, match="expected HOST:PORT"):
            address(text)
        return
    assert address(text) == expected
    assert str(address(text)) == text
