"""Smaller PNGs: a screenshot of text needs 256 colors, and browsers write all of them, weakly compressed."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_COLORS: Final = 256
_ALIKE: Final = 3 * 6**2  # colors that differ by less than 6 in each channel look alike
_RGB: Final = (8, 2)  # bits of a channel, color type
_PALETTE: Final = 3


def with_palette(png: bytes) -> bytes:
    """Return the picture with 256 colors: the most frequent that do not look alike. Others become the nearest one."""
    header, packed = b"", b""
    for kind, content in _chunks(png):
        header = content if kind == b"IHDR" else header
        packed += content if kind == b"IDAT" else b""
    width, height, *form = struct.unpack(">IIBBBBB", header)
    assert tuple(form[:2]) == _RGB, f"expected RGB without alpha, got {form}"
    pixels = [struct.unpack_from(f"{3 * width}B", row) for row in _rows(zlib.decompress(packed), width)]
    colors = Counter(color for row in pixels for color in zip(row[::3], row[1::3], row[2::3], strict=True))
    palette: list[tuple[int, ...]] = []
    for color, _ in colors.most_common():
        if len(palette) < _COLORS and all(_distance(color, each) > _ALIKE for each in palette):
            palette.append(color)
    index = {color: min(range(len(palette)), key=lambda at: _distance(palette[at], color)) for color in colors}
    lines = (bytes(index[color] for color in zip(row[::3], row[1::3], row[2::3], strict=True)) for row in pixels)
    return _SIGNATURE + b"".join(
        _chunk(kind, content)
        for kind, content in (
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, _PALETTE, 0, 0, 0)),
            (b"PLTE", bytes(channel for color in palette for channel in color)),
            (b"IDAT", zlib.compress(b"".join(b"\0" + line for line in lines), 9)),
            (b"IEND", b""),
        )
    )


def _distance(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _rows(data: bytes, width: int) -> Iterator[bytearray]:
    """Undo the filter of each row (PNG specification, 9.2)."""
    length, before = 3 * width, bytearray(3 * width)
    for start in range(0, len(data), length + 1):
        kind, row = data[start], bytearray(data[start + 1 : start + 1 + length])
        for at in range(length) if kind else ():
            left, up = row[at - 3] if at >= 3 else 0, before[at]
            corner = before[at - 3] if at >= 3 else 0
            row[at] = (row[at] + (0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind]) & 255
        yield row
        before = row


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda each: abs(guess - each))
