"""Parts of records that many objects have in common are stored once."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")
_SHARED_MAX: Final = 20_000  # distinct parts; then the table starts again, so that its memory is bounded
_shared: dict[bytes, Any] = {}


def share(part: T) -> T:
    """Return the one value that stands for all values equal to `part`. Callers must not change it."""
    if len(_shared) > _SHARED_MAX:
        _shared.clear()
    shared: T = _shared.setdefault(type(part).__name__.encode() + msgspec.json.encode(part), part)
    return shared
