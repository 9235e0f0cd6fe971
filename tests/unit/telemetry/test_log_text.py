"""A line of text is one line of printable ASCII with all its content, whatever the fields are."""

from __future__ import annotations

import json
import logging

from hypothesis import given
from hypothesis import strategies as st

from webhook.telemetry.log import TextFormatter

TEXT = st.text(st.characters(exclude_categories=["Cs"]))  # no JSON that was decoded has half a surrogate pair
ODD = st.sampled_from(
    ["", " ", "\n", "\r", "\x00", "\x1b[31m", "\x7f", "\x85", "\u2028", '"', "\\", "a=b", "a,b", "\u00e9"]
)


def line(message: str, **fields: object) -> str:
    """Return the line of these fields."""
    record = logging.LogRecord("webhook", logging.INFO, "", 0, "%s", (message,), None)
    record.fields = fields
    return TextFormatter().format(record)


@given(TEXT | ODD, TEXT | ODD, st.lists(TEXT | ODD), st.dictionaries(TEXT | ODD, st.integers()))
def test_nothing_breaks_a_line_or_speaks_to_a_terminal(
    message: str, value: str, values: list[str], table: dict[str, int]
) -> None:
    """In the message, and in each kind of field."""
    found = line(message, uid=value, nodes=values, by=table)
    assert found.isascii()
    assert found.isprintable()


@given(TEXT | ODD)
def test_a_field_can_be_read_back(value: str) -> None:
    """A value is written as it is, or quoted as in JSON. Two different values never look the same."""
    _, _, shown = line("it happened", because=value).partition("it happened because=")
    assert (json.loads(shown) if shown.startswith('"') else shown) == value
