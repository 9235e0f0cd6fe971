"""Equal parts of objects are kept once."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")
_SHARED_MAX: Final = 20_000  # distinct parts; then it starts anew, so that odd clusters cost memory and no more
_shared: dict[bytes, Any] = {}


def share(part: T) -> T:
    """The one value that stands for all equal ones. Nobody may change it."""
    if len(_shared) > _SHARED_MAX:
        _shared.clear()
    shared: T = _shared.setdefault(type(part).__name__.encode() + msgspec.json.encode(part), part)
    return shared
