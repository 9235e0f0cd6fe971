"""Fields of objects as JSON."""

from __future__ import annotations

from typing import Any

import msgspec


def as_fields(value: Any) -> Any:
    """Return an object of a type as JSON, without the fields that are null."""
    return _without_nulls(msgspec.to_builtins(value))


def field_at(value: Any, *path: str) -> Any:
    """Return the field at `path` of any JSON, or None if a step of the path is absent, null or not an object."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value
