"""Fields of objects as JSON, whatever their shape."""

from __future__ import annotations

from typing import Any


def field_at(value: Any, *path: str) -> Any:
    """Return the field at `path`, or None if any step of the path is absent, null or not an object."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
