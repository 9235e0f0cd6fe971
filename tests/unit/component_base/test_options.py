"""Options of both programs: how a value is read, where it comes from, and what is said of one that can't be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import click
import pytest

from webhook.component_base import command_line
from webhook.component_base.options import ADDRESS, NAME, ON_OR_OFF, SECONDS, Address, Parsed, argument, option

READ: Final = {
    ADDRESS: {
        ":9443": Address("", 9443),
        "127.0.0.1:0": Address("127.0.0.1", 0),
        "[::1]:65535": Address("::1", 65535),
        "localhost:80": Address("localhost", 80),
    },
    SECONDS: {"0": 0, "15": 15, "0.5": 0.5, "999999.999": 999999.999},
    NAME: {" a/b ": " a/b "},
    ON_OR_OFF: {"on": True, "off": False},
}
REFUSED: Final = {
    ADDRESS: ("9443", "host:", ":65536", "::1:80", "a:-1", "a:http", "a:\N{ARABIC-INDIC DIGIT ONE}", ""),
    SECONDS: ("-1", "1s", "1e3", "1_0", " 1", ".5", "nan", "inf", "1000000", "\N{ARABIC-INDIC DIGIT ONE}", ""),
    NAME: ("",),
    ON_OR_OFF: ("yes", "On", ""),
}


def _id(value: object) -> str:
    """The name of a row: the same in each process that collects the tests."""
    return value.name if isinstance(value, Parsed) else ascii(value)


@pytest.mark.parametrize(
    ("kind", "text", "value"), [(kind, *row) for kind, rows in READ.items() for row in rows.items()], ids=_id
)
def test_a_text_is_read(kind: click.ParamType[Any], text: str, value: object) -> None:
    """An address is shown as it is written."""
    assert kind.convert(text, None, None) == value
    assert kind is not ADDRESS or str(value) == text


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in REFUSED.items() for text in texts], ids=_id)
def test_another_text_is_refused(kind: click.ParamType[Any], text: str) -> None:
    """With what was got, and what was expected."""
    with pytest.raises(click.BadParameter) as refused:
        kind.convert(text, None, None)
    assert refused.value.message.startswith(f"got {text!r}, expected ")


@dataclass(frozen=True, kw_only=True)
class HouseSettings:
    """Of a base class."""

    owner: str | None = option(type=NAME)


@dataclass(frozen=True, kw_only=True)
class PaintSettings(HouseSettings):
    """What the program below takes."""

    color: str = option("-c", default="red", type=click.Choice(["red", "green", "blue"]))
    listen_at: Address | None = option(type=ADDRESS)
    seconds: float = option(required=True, type=SECONDS)
    dry: bool = option(is_flag=True)
    walls: tuple[str, ...] = argument(nargs=-1)


PROGRAM: Final = command_line.program("decorate", executable="decorate", description="Decorates.")
SEEN: Final[list[PaintSettings]] = []


@command_line.command(PROGRAM, PaintSettings, "PAINT", examples="decorate paint", exit_codes="3 always.")
def paint(settings: PaintSettings) -> int:
    """Paint walls."""
    SEEN.append(settings)
    return 3


DEFAULTS: Final = {"color": "red", "listen_at": None, "seconds": 1.0, "owner": None, "dry": False, "walls": ()}
GIVEN: Final = {
    "a default": ("", {}, {}),
    "a flag of a field": ("a --listen-at [::1]:80 b", {}, {"listen_at": Address("::1", 80), "walls": ("a", "b")}),
    "a short flag wins over its variable": ("-c blue", {"PAINT_COLOR": "green"}, {"color": "blue"}),
    "a variable wins over the default": ("", {"PAINT_COLOR": "green"}, {"color": "green"}),
    "the variable of a flag without a value": ("", {"PAINT_DRY": "true"}, {"dry": True}),
    "the field of a base class": ("", {"PAINT_OWNER": "-"}, {"owner": "-"}),
}


@pytest.mark.parametrize(("words", "environment", "expected"), GIVEN.values(), ids=GIVEN)
def test_a_field_is_a_flag_and_a_variable(
    words: str, environment: dict[str, str], expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are named for the field."""
    for variable, text in ({"PAINT_SECONDS": "1"} | environment).items():
        monkeypatch.setenv(variable, text)
    assert command_line.main(PROGRAM, "decorate", ["paint", *words.split()]) == 3
    assert SEEN.pop() == PaintSettings(**DEFAULTS | expected)


WRONG: Final = {
    "a choice": ("-c Red", "1", "'-c' (env var: 'PAINT_COLOR'): 'Red' is not one of 'red', 'green', 'blue'."),
    "a variable": ("", "soon", "(env var: 'PAINT_SECONDS'): got 'soon', expected a number of seconds"),
    "nothing": ("", "", "Error: Missing option '--seconds' (env var: 'PAINT_SECONDS')."),
}


@pytest.mark.parametrize(("words", "seconds", "problem"), WRONG.values(), ids=WRONG)
def test_a_value_that_can_not_be_used_is_a_sentence(
    words: str, seconds: str, problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What, got, expected; with the flag and the variable that it can come from."""
    monkeypatch.setenv("PAINT_SECONDS", seconds)
    assert command_line.main(PROGRAM, "decorate", ["paint", *words.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert problem in err.splitlines()[-1]
