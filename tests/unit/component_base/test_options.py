"""Options of both programs: where a value comes from, how it is read, and what is wrong with one that can't be used."""

from __future__ import annotations

from typing import Any, Final

import click
import pytest
from support.drivers.command_lines import values

from webhook.component_base.command_line import Command
from webhook.component_base.errors import BadSettings
from webhook.component_base.options import ADDRESS, NAME, Argument, OneOf, OnOrOff, Option, any_name, count, seconds
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("100", 100), ("999999", 999999), *((odd, None) for odd in ("-1", "1.5", "", "1e3"))],
)
def test_a_count_is_a_plain_number(text: str, expected: int | None) -> None:
    """None at all, or some."""
    if expected is None:
        with pytest.raises(ValueError, match="expected a number, 0 or more"):
            count(text)
        return
    assert count(text) == expected


def test_a_name_is_any_text_but_none() -> None:
    """As it was typed."""
    assert any_name(" a/b ") == " a/b "
    with pytest.raises(ValueError, match=r"^expected a name$"):
        any_name("")


COMMAND: Final = Command(
    "paint",
    examples="paint",
    params=[
        Option("PAINT_", "--color", "-c", default="red", type=OneOf("red", "green", "blue")),
        Option("PAINT_", "--page", default="on", type=OnOrOff()),
        Option("PAINT_", "--listen-at", type=ADDRESS),
        Option("PAINT_", "--seconds", required=True, type=SECONDS_TYPE),
        Option("PAINT_", "--owner", type=NAME),
        Option("PAINT_", "--dry", is_flag=True),
        Argument(["walls"], nargs=-1),
    ],
)
DEFAULTS: Final = {
    "color": "red",
    "page": True,
    "listen_at": None,
    "seconds": 1.0,
    "owner": None,
    "dry": False,
    "walls": (),
}


def paint(*words: str) -> dict[str, Any]:
    """What a command line comes to."""
    return values([COMMAND], "paint", *words)


WORDS: Final = {
    "--seconds 1": {},
    "--seconds=1": {},
    "--seconds 1 -c blue": {"color": "blue"},
    "--seconds 1 -cblue": {"color": "blue"},
    "a --seconds 1 b --color=blue c": {"color": "blue", "walls": ("a", "b", "c")},
    "--seconds 1 --color blue --color green": {"color": "green"},
    "--seconds 1 --page off --dry": {"page": False, "dry": True},
    "--seconds 1 --listen-at [::1]:80 --owner=-": {"listen_at": ("::1", 80), "owner": "-"},
    "--seconds 1 -- --dry -x": {"walls": ("--dry", "-x")},
}


@pytest.mark.parametrize(("words", "expected"), WORDS.items(), ids=WORDS.keys())
def test_options_stand_anywhere_and_in_any_of_their_forms(words: str, expected: dict[str, Any]) -> None:
    """--flag value, --flag=value, -f value and -fvalue, before, between and behind words; what is not given is None."""
    assert paint(*words.split()) == DEFAULTS | expected


SOURCES: Final = {
    "a flag wins over its variable": ("-c blue", {"PAINT_COLOR": "green"}, {"color": "blue"}),
    "a variable wins over the default": ("", {"PAINT_COLOR": "green"}, {"color": "green"}),
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
    assert paint(*words.split()) == DEFAULTS | expected


WRONG: Final = {
    "all at once, in the order of the help": (
        "--owner= --listen-at 80 --page no --color pink",
        {},
        [
            "--color: got 'pink', expected red, green or blue",
            "--page: got 'no', expected on or off",
            "--listen-at: got '80', expected HOST:PORT, :PORT or [IPV6]:PORT with a port from 0 to 65535",
            "--seconds: got nothing, expected SECONDS (or set PAINT_SECONDS)",
            "--owner: got '', expected a name",
        ],
    ),
    "a choice that is nearly right": (
        "--seconds 1 -c gren",
        {},
        ["--color: got 'gren', expected red, green or blue; did you mean green?"],
    ),
    "a choice is spelled as it is": (
        "--seconds 1 -c Red",
        {},
        ["--color: got 'Red', expected red, green or blue; did you mean red?"],
    ),
    "what came from the environment is called so": (
        "",
        {"PAINT_SECONDS": "soon", "PAINT_DRY": "maybe"},
        [
            "PAINT_SECONDS: got 'soon', expected a number of seconds, 0 or more, such as 15 or 0.5",
            "PAINT_DRY: got 'maybe', expected true or false",
        ],
    ),
    "an empty variable is one that was set": (
        "--seconds 1",
        {"PAINT_COLOR": ""},
        ["PAINT_COLOR: got '', expected red, green or blue"],
    ),
    "a flag hides what its variable says": (
        "--seconds 1 -c pink",
        {"PAINT_COLOR": "red"},
        ["--color: got 'pink', expected red, green or blue"],
    ),
}


@pytest.mark.parametrize(("words", "environment", "problems"), WRONG.values(), ids=WRONG.keys())
def test_every_value_that_can_not_be_used_is_reported_at_once(
    words: str, environment: dict[str, str], problems: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What, got, expected; by the flag or the variable that it came from."""
    for variable, text in environment.items():
        monkeypatch.setenv(variable, text)
    with pytest.raises(BadSettings) as caught:
        paint(*words.split())
    assert list(caught.value.problems) == problems


def test_a_word_that_can_not_be_used_is_reported_as_an_option_is() -> None:
    """By the name that the help gives it."""
    command = Command("fill", examples="fill", params=[Argument(["shape"], type=OneOf("round", "square"))])
    for words, problem in (
        (["fill", "rond"], "SHAPE: got 'rond', expected round or square; did you mean round?"),
        (["fill"], "SHAPE: got nothing, expected {round|square}"),
    ):
        with pytest.raises(BadSettings) as caught:
            values([command], *words)
        assert caught.value.problems == (problem,)


def test_a_flag_that_is_cut_short_is_no_flag() -> None:
    """A flag that a later version adds must not change what a script means."""
    with pytest.raises(click.NoSuchOption, match="--col"):
        paint("--seconds", "1", "--col", "blue")
