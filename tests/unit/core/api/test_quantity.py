"""The expected amounts are the results of apimachinery's own ParseQuantity, MilliValue and Value."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import reduce

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.models import oracle

from webhook.core.api import container
from webhook.core.api.container import UNREADABLE, amounts, milli_value, units

INT64_MAX = 2**63 - 1
SUFFIXES = {
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate("num", -3)},
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{prefix}i": Fraction(1024) ** power for power, prefix in enumerate("KMGTPE", 1)},
    "": Fraction(1),
}


@pytest.mark.parametrize(
    ("text", "thousandths"),
    [
        ("0", 0),
        (".5", 500),
        ("1.", 1000),
        ("+2", 2000),
        ("007", 7000),
        ("1n", 1),
        ("1u", 1),
        ("1001u", 2),
        ("1000u", 1),
        ("1.0001m", 2),
        ("8549Mi", 8549 * 2**20 * 1000),
        ("0.0001Ki", 103),
        ("1E-9", 1),
        ("0e99", 0),
        ("-0", 0),
        ("-0.000Ki", 0),
        ("9223372036854775807", INT64_MAX * 1000),
        ("16Ei", INT64_MAX * 1000),
    ],
)
def test_a_quantity_is_read_in_thousandths_rounded_up(text: str, thousandths: int) -> None:
    """As MilliValue, except for its overflow. Only quantities with a binary suffix are capped at int64."""
    assert milli_value(text) == thousandths


@pytest.mark.parametrize(
    "text",
    [
        *["", " ", ".", "+", "-", "m", "Ki", "1 ", " 1", "1\n", "one", "0x10", "1_000", "1,5", "1.2.3", "--1"],
        *[
            "1K",
            "1mi",
            "1ki",
            "1i",
            "1Kim",
            "1mm",
            "1e",
            "1e+",
            "1e1.5",
            "1ee1",
            "1Ei2",
            "NaN",
            "inf",
            "\N{DIGIT ONE}\N{ARABIC-INDIC DIGIT TWO}",
        ],
        *["-1", "-1m", "-5Gi"],
        *["9223372036854775808", "10E", "1e19", "1e30", "1e101", "1e-101", "1e999999999999", "1" * 65, "0" * 65],
    ],
)
def test_an_amount_that_no_node_can_have_is_unreadable(text: str) -> None:
    """Go rejects it, overflows, or reads a negative amount. Here it is never zero."""
    assert milli_value(text) is None
    assert amounts({"cpu": text}) == {"cpu": UNREADABLE}


@pytest.mark.parametrize(
    ("written", "thousandths"),
    [
        pytest.param("1", 1000, id="text"),
        pytest.param(1, 1000, id="an integer in a file"),
        pytest.param(0.1, 100, id="a float in a file"),
        pytest.param(1e21, UNREADABLE, id="a float that is too large"),
        pytest.param(True, UNREADABLE, id="a bool, which equals 1"),
        pytest.param(None, UNREADABLE, id="null"),
        pytest.param(["1"], UNREADABLE, id="a list"),
        pytest.param({"1": 1}, UNREADABLE, id="a mapping"),
        pytest.param(reduce(lambda inner, _: [inner], range(100_000), "1"), UNREADABLE, id="a list of great depth"),
    ],
)
def test_any_value_is_read_or_is_more_than_any_node_has(written: object, thousandths: int) -> None:
    """A file can have any value there. One wrong value does not change the others."""
    assert amounts({"a": "2", "b": written, "c": 1}) == {"a": 2000, "b": thousandths, "c": 1000}


def test_an_unreadable_amount_stays_unreadable_in_a_sum() -> None:
    """It is larger than any readable amount, in thousandths and in units."""
    assert milli_value(str(INT64_MAX)) < UNREADABLE
    assert units(UNREADABLE) > INT64_MAX


DECIMALS = st.from_regex(re.compile(r"[0-9]{1,22}(\.[0-9]{0,12})?", re.ASCII), fullmatch=True)


@given(number=DECIMALS, suffix=st.sampled_from(sorted(SUFFIXES)))
@example(number="0.0000000001", suffix="Ei")
def test_a_number_with_a_suffix_is_their_product(number: str, suffix: str) -> None:
    """Exactly, for any length, and never rounded down."""
    exact = Fraction(number) * SUFFIXES[suffix] * 1000
    most = INT64_MAX * 1000
    if exact <= most:
        assert milli_value(number + suffix) == math.ceil(exact)
    else:
        assert milli_value(number + suffix) == (most if suffix.endswith("i") else None)


@given(number=DECIMALS, exponent=st.integers(-100, 100), sign=st.sampled_from(["", "+"]), e=st.sampled_from("eE"))
def test_a_decimal_exponent_is_a_power_of_ten(number: str, exponent: int, sign: str, e: str) -> None:
    """As for any number with an exponent."""
    text = f"{number}{e}{sign if exponent >= 0 else ''}{exponent}"
    exact = Fraction(number) * Fraction(10) ** exponent * 1000
    assert milli_value(text) == (math.ceil(exact) if exact <= INT64_MAX * 1000 else None)


@given(st.text(st.sampled_from("0123456789.+-eEinumkKMGTP \u0661"), max_size=80) | st.text(max_size=20))
def test_no_text_raises_and_no_amount_is_negative(text: str) -> None:
    """Any text has an amount or None."""
    read = milli_value(text)
    assert read is None or 0 <= read < UNREADABLE


@given(st.integers(0, 2**80))
def test_rounding_up_twice_equals_rounding_up_once(millionths: int) -> None:
    """Therefore the units of rounded thousandths equal Go's Value."""
    assert units(-(-millionths // 1000)) == -(-millionths // 10**6)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("-0", 0, id="minus zero"),
        pytest.param("+7", 7, id="plus"),
        pytest.param("007", 7, id="leading zeros"),
        pytest.param("9223372036854775807", 2**63 - 1, id="the greatest"),
        pytest.param("-9223372036854775808", -(2**63), id="the least"),
        pytest.param("9223372036854775808", None, id="one too great"),
        pytest.param("-9223372036854775809", None, id="one too little"),
        pytest.param("9" * 5000, None, id="more digits than int() takes"),
        pytest.param("", None, id="empty"),
        pytest.param("-", None, id="a sign alone"),
        pytest.param("1_0", None, id="underscore"),
        pytest.param(" 1", None, id="blank"),
        pytest.param("1\n", None, id="line feed"),
        pytest.param("0x3", None, id="hexadecimal"),
        pytest.param("٣", None, id="a digit that is not ASCII"),
    ],
)
def test_numbers_are_read_as_go_reads_them(text: str, number: int | None) -> None:
    """strconv.ParseInt in base 10 and 64 bits."""
    assert container.parse_int64(text) == number
    assert oracle.parse_int(text) == number
