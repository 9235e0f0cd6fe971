"""Fields of objects as JSON, and what msgspec says of one with a value of the wrong type."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

_TYPES: Final = re.compile(r"^Expected `([^`]+)`, got `([^`]+)`$")  # how msgspec names a wrong type
_WORDS: Final = {
    "array": "a list",
    "bool": "a boolean",
    "float": "a number",
    "int": "a number",
    "null": "nothing",
    "object": "a mapping",
    "str": "a string",
}


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


def in_words(message: str) -> str:
    """Return the message of a msgspec.ValidationError without its path; of a wrong type, in words."""
    return _TYPES.sub(_expected_and_got, message)


def _expected_and_got(wrong: re.Match[str]) -> str:
    """The types of Python and JSON in the words of this module; a number or boolean can be made a string."""
    wanted, got = ([_WORDS.get(name, name) for name in names.split(" | ")] for names in wrong.groups())
    expected = " or ".join(name for name in wanted if name != "nothing")
    hint = ": put the value in quotes" if "a string" in wanted and got[0] in ("a number", "a boolean") else ""
    return f"got {got[0]}, expected {expected}{hint}"
