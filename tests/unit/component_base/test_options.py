"""Options of both programs: where a value comes from, how it is read, and what is wrong with one that can't be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import click
import pytest

from webhook.component_base import command_line
from webhook.component_base.address import Address
from webhook.component_base.options import (
    ADDRESS,
    NAME,
    ON_OR_OFF,
    any_name,
    argument,
    option,
    seconds,
)
from webhook.component_base.options import SECONDS as SECONDS_TYPE

SECONDS: Final = {
    "0": 0,
    "15": 15,
    "0.5": 0.5,
    "999999.999": 999999.999,
    "-1": None,
    "+1": None,
    "1s": None,
    "1e3": None,
    "1_0": None,
    " 1": None,
    ".5": None,
    "nan": None,
    "inf": None,
    "1000000": None,
    "5s": None,
    "0x1": None,
    "\N{ARABIC-INDIC DIGIT ONE}": None,
    "": None,
}


@pytest.mark.parametrize(("text", "expected"), SECONDS.items(), ids=ascii)
def test_seconds_are_a_plain_decimal_number(text: str, expected: float | None) -> None:
    """None at all, whole ones and parts of one; no sign, no unit, no exponent."""
    if expected is None:
        with pytest.raises(ValueError, match="expected a number of seconds, 0 or more"):
            seconds(text)
        return
    assert seconds(text) == expected


def test_a_name_is_any_text_but_none() -> None:
    """As it was typed."""
    assert any_name(" a/b ") == " a/b "
    with pytest.raises(ValueError, match=r"^expected a name$"):
        any_name("")


@dataclass(frozen=True, kw_only=True)
class HouseSettings:
    """Of a base class."""

    owner: str | None = option(type=NAME)


@dataclass(frozen=True, kw_only=True)
class PaintSettings(HouseSettings):
    """What the program below takes."""

    color: str = option("-c", default="red", type=click.Choice(["red", "green", "blue"]))
    page: bool = option(default="on", type=ON_OR_OFF)
    listen_at: Address | None = option(type=ADDRESS)
    seconds: float = option(required=True, type=SECONDS_TYPE)
    dry: bool = option(is_flag=True)
    walls: tuple[str, ...] = argument(nargs=-1)


PROGRAM: Final = command_line.program("decorate", executable="decorate", description="Decorates.")
SEEN: Final[list[PaintSettings]] = []


@command_line.command(PROGRAM, PaintSettings, "PAINT", examples="decorate paint", exit_codes="3 always.")
def paint(settings: PaintSettings) -> int:
    """Paint walls."""
    SEEN.append(settings)
    return 3


DEFAULTS: Final = {
    "color": "red",
    "page": True,
    "listen_at": None,
    "seconds": 1.0,
    "owner": None,
    "dry": False,
    "walls": (),
}


def painted(*words: str) -> PaintSettings:
    """What a command line comes to."""
    assert command_line.main(PROGRAM, "decorate", ["paint", *words]) == 3
    return SEEN.pop()


WORDS: Final = {
    "--seconds 1": {},
    "--seconds=1": {},
    "--seconds 1 -c blue": {"color": "blue"},
    "--seconds 1 -cblue": {"color": "blue"},
    "a --seconds 1 b --color=blue c": {"color": "blue", "walls": ("a", "b", "c")},
    "--seconds 1 --color blue --color green": {"color": "green"},
    "--seconds 1 --page off --dry": {"page": False, "dry": True},
    "--seconds 1 --listen-at [::1]:80 --owner=-": {"listen_at": Address("::1", 80), "owner": "-"},
    "--seconds 1 -- --dry -x": {"walls": ("--dry", "-x")},
}


@pytest.mark.parametrize(("words", "expected"), WORDS.items(), ids=WORDS.keys())
def test_options_stand_anywhere_and_in_any_of_their_forms(words: str, expected: dict[str, Any]) -> None:
    """--flag value, --flag=value, -f value and -fvalue, before, between and behind words; what is not given is None."""
    assert painted(*words.split()) == PaintSettings(**DEFAULTS | expected)


SOURCES: Final = {
    "a flag wins over its variable": ("-c blue", {"PAINT_COLOR": "green"}, {"color": "blue"}),
    "a variable wins over the default": ("", {"PAINT_COLOR": "green"}, {"color": "green"}),
    "an empty variable counts as none": ("", {"PAINT_COLOR": ""}, {"color": "red"}),
    "a variable gives what is required": ("", {"PAINT_SECONDS": "2"}, {"seconds": 2.0}),
    "the variable of a flag without a value": ("", {"PAINT_DRY": "true"}, {"dry": True}),
    "such a variable can say no": ("", {"PAINT_DRY": "false"}, {"dry": False}),
    "such a flag wins over its variable": ("--dry", {"PAINT_DRY": "false"}, {"dry": True}),
}


@pytest.mark.parametrize(("words", "environment", "expected"), SOURCES.values(), ids=SOURCES.keys())
def test_a_flag_wins_over_its_variable_and_that_over_the_default(
    words: str, environment: dict[str, str], expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable is named for its flag."""
    for variable, text in ({"PAINT_SECONDS": "1"} | environment).items():
        monkeypatch.setenv(variable, text)
    assert painted(*words.split()) == PaintSettings(**DEFAULTS | expected)


WRONG: Final = {
    "a choice": ("-c pink", {}, "'-c' (env var: 'PAINT_COLOR'): 'pink' is not one of 'red', 'green', 'blue'."),
    "a choice in other letters": ("-c Red", {}, "'Red' is not one of 'red', 'green', 'blue'."),
    "an address": (
        "--listen-at 80",
        {},
        "got '80', expected HOST:PORT, :PORT or [IPV6]:PORT with a port from 0 to 65535",
    ),
    "nothing": ("--owner=", {}, "'--owner' (env var: 'PAINT_OWNER'): got '', expected a name"),
    "a variable": (
        "",
        {"PAINT_SECONDS": "soon"},
        "(env var: 'PAINT_SECONDS'): got 'soon', expected a number of seconds",
    ),
    "a flag that is cut short": ("--col blue", {}, "No such option '--col'"),
    "a flag without its value": ("--color", {}, "Option '--color' requires an argument."),
}


@pytest.mark.parametrize(("words", "environment", "problem"), WRONG.values(), ids=WRONG.keys())
def test_a_value_that_can_not_be_used_is_a_sentence(
    words: str,
    environment: dict[str, str],
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What, got, expected; with the flag and the variable that it can come from."""
    for variable, text in ({"PAINT_SECONDS": "1"} | environment).items():
        monkeypatch.setenv(variable, text)
    assert command_line.main(PROGRAM, "decorate", ["paint", *words.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert problem in err.splitlines()[-1]


def test_what_is_required_names_its_variable(capsys: pytest.CaptureFixture[str]) -> None:
    """A user may set either."""
    assert command_line.main(PROGRAM, "decorate", ["paint"]) == 2
    assert capsys.readouterr().err.endswith("Error: Missing option '--seconds' (env var: 'PAINT_SECONDS').\n")
