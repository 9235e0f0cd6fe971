"""Options: how one setting is written, read, and found among flags and environment.

A flag wins over its environment variable, which wins over the default. Invariant: every problem is reported at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from webhook.errors import UserError

ENVIRONMENT_PREFIX: Final = "KUBEVIRT_COSCHEDULE_"
_COUNT: Final = re.compile("[0-9]{1,6}")
_MAX_PORT: Final = 65535
_PORT: Final = re.compile("[0-9]{1,5}")
_SECONDS: Final = re.compile(r"[0-9]{1,5}(\.[0-9]{1,3})?")


class BadSettings(UserError):
    """Flags or environment that can't be used."""


class Address(NamedTuple):
    """Where to listen; an empty host is every interface."""

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


def one_of(*words: str) -> Callable[[str], str]:
    """A parser for one of a few words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"expected {', '.join(words[:-1])} or {words[-1]}")
        return text

    return parse


def name(text: str) -> str:
    """Any text but none.

    Raises:
        ValueError: says what was expected.
    """
    if not text:
        raise ValueError("expected a name")
    return text


def seconds(text: str) -> float:
    """A time in seconds, written as a plain decimal number.

    Raises:
        ValueError: says what was expected.
    """
    if not _SECONDS.fullmatch(text):
        raise ValueError("expected a number of seconds, 0 or more, such as 15 or 0.5")
    return float(text)


def yes_or_no(text: str) -> bool:
    """Whether it is so: what a switch says.

    Raises:
        ValueError: says what was expected.
    """
    if text not in ("true", "false"):
        raise ValueError("expected true or false")
    return text == "true"


def count(text: str) -> int:
    """How many of something.

    Raises:
        ValueError: says what was expected.
    """
    if not _COUNT.fullmatch(text):
        raise ValueError("expected a number, 0 or more, such as 100")
    return int(text)


def on_or_off(text: str) -> bool:
    """Whether a part of the program is on."""
    return one_of("on", "off")(text) == "on"


class Option(Struct, frozen=True, kw_only=True):
    """One setting: its flag, how its text is read, and what the help says.

    Without a default it is required, or `optional`: then its value is None where nobody gives one. A `switch` is a flag
    without a value, which stands for true.
    """

    flag: str
    placeholder: str
    help: str
    parse: Callable[[str], Any] = str
    default: str | None = None
    optional: bool = False
    short: str | None = None
    switch: bool = False

    @property
    def field(self) -> str:
        """The attribute that holds the value."""
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable that gives the value where the flag does not."""
        return ENVIRONMENT_PREFIX + self.field.upper()


def resolve(
    options: Sequence[Option], flags: Mapping[str, str | None], environment: Mapping[str, str]
) -> dict[str, Any]:
    """Field -> value for every option.

    Args:
        flags: field -> text given on the command line, None or absent where none was.
        environment: the process's environment variables.

    Raises:
        BadSettings: required ones that are missing and values that can't be read, all of them.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for option in options:
        text, origin = flags.get(option.field), option.flag
        if text is None and option.variable in environment:
            text, origin = environment[option.variable], option.variable
        if text is None:
            text = option.default
        if text is None and option.optional:
            values[option.field] = None
            continue
        if text is None:
            problems.append(f"{option.flag}: got nothing, expected {option.placeholder} (or set {option.variable})")
            continue
        try:
            values[option.field] = option.parse(text)
        except ValueError as error:
            problems.append(f"{origin}: got {text!r}, {error}")
    if problems:
        raise BadSettings(*problems)
    return values
