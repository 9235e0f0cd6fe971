"""What msgspec says of a value of the wrong type, in words of YAML and JSON."""

from __future__ import annotations

import re
from typing import Final

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


def in_words(message: str) -> str:
    """Return the message of a msgspec.ValidationError without its path; of a wrong type, in words."""
    return _TYPES.sub(_expected_and_got, message)


def _expected_and_got(wrong: re.Match[str]) -> str:
    """The types of Python and JSON in the words of this module; a number or boolean can be made a string."""
    wanted, got = ([_WORDS.get(name, name) for name in names.split(" | ")] for names in wrong.groups())
    expected = " or ".join(name for name in wanted if name != "nothing")
    hint = ": put the value in quotes" if "a string" in wanted and got[0] in ("a number", "a boolean") else ""
    return f"got {got[0]}, expected {expected}{hint}"
