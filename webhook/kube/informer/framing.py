"""The bytes of one answer, until they are whole: lines of a watch, a page of a list, the body of an HTTP error."""

from __future__ import annotations

from typing import Final

_PAGE_MAX_BYTES: Final = 256 * 1024 * 1024
_LINE_MAX_BYTES: Final = 16 * 1024 * 1024  # ten times the largest object that etcd takes
_ERROR_MAX_BYTES: Final = 64 * 1024


class Framing:
    """The bytes that are not decoded yet. What comes out depends on the bytes, not on how they were cut into pieces."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def clear(self) -> None:
        """Begin a new answer."""
        self._rest.clear()

    @property
    def body(self) -> bytes:
        """The bytes that were taken in and not returned as lines; empty if there are none."""
        return bytes(self._rest)

    def add_error(self, piece: bytes) -> None:
        """Take in a piece of an HTTP error's body. Only the first 64 KiB count."""
        self._rest += piece[: _ERROR_MAX_BYTES - len(self._rest)]

    def add_page(self, piece: bytes) -> str:
        """Take in a piece of a page. Return what is wrong with the page; empty if it is not too long."""
        self._rest += piece
        return f"a list of more than {_PAGE_MAX_BYTES} bytes" if len(self._rest) > _PAGE_MAX_BYTES else ""

    def add_lines(self, piece: bytes) -> list[bytes]:
        """Take in a piece of a watch. Return the lines that are whole now, without empty ones."""
        if b"\n" not in piece:
            self._rest += piece
            return []
        lines = (bytes(self._rest) + piece).split(b"\n")
        self._rest[:] = lines.pop()
        return [line for line in lines if line]

    def excess(self, line: bytes | None = None) -> str:
        """Return what is wrong with a line (by default the one that is not whole yet); empty if it is not too long."""
        size = len(self._rest if line is None else line)
        return f"an event of more than {_LINE_MAX_BYTES} bytes" if size > _LINE_MAX_BYTES else ""
