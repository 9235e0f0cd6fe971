"""resource.Quantity: its text as an exact whole number of thousandths, as kube-scheduler counts.

Follows apimachinery pkg/api/resource/quantity.go (ParseQuantity, MilliValue, Value): whatever is finer is rounded up.
kube-apiserver itself rounds up to thousandths what it stores (pkg/apis/core/v1/defaults.go, SetDefaults_ResourceList),
so nothing that it tells loses precision here. Invariant: no text raises; what can't be read is None, never 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

MILLI: Final = 1000
UNREADABLE: Final = (1 << 63) * MILLI
"""The amount of a quantity that can't be read. Nodes have less, for they count in int64; and it adds up."""

_MAX: Final = UNREADABLE - MILLI  # int64, of whole units
_TEXT_MAX_CHARS: Final = 64  # kubelets and people write 20; a long one must not cost time
_EXPONENT_MAX: Final = 100  # far beyond int64 in both directions, and quick to compute
_FORM: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(|[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)", re.ASCII)
_DECIMAL: Final = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def milli_value(text: str) -> int | None:
    """The quantity in thousandths, rounded up; None where it can't be read, or is less than nothing.

    Go counts in int64: what does not fit overflows there, to zero or to anything. No node has as much, so it is not
    read either.
    """
    parsed = _FORM.fullmatch(text) if len(text) <= _TEXT_MAX_CHARS else None
    if parsed is None:
        return None
    sign, whole, fraction, suffix = parsed.groups()
    digits = whole + (fraction or "")
    if not digits:
        return None
    number = int(digits)
    if number == 0:
        return 0
    if sign == "-":
        return None
    if suffix in _BINARY:
        return min(_rounded_up(number << _BINARY[suffix], 3 - len(fraction or "")), _MAX)  # these alone are cut there
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    if abs(exponent) > _EXPONENT_MAX:
        return None
    thousandths = _rounded_up(number, exponent + 3 - len(fraction or ""))
    return thousandths if thousandths <= _MAX else None


def _ten_to(exponent: int) -> int:
    return int(10**exponent)


def _rounded_up(number: int, exponent: int) -> int:
    """The least whole number that is not under number * 10 ** exponent."""
    return number * _ten_to(exponent) if exponent >= 0 else -(-number // _ten_to(-exponent))


def amounts(quantities: Mapping[str, Any] | None) -> dict[str, int]:
    """A v1.ResourceList in thousandths; what can't be read is UNREADABLE."""
    if not quantities:
        return {}
    try:
        return {name: _amount(written) for name, written in quantities.items()}
    except TypeError:  # a list, or a mapping: no API server has it
        return {name: _amount(str(written)) for name, written in quantities.items()}


@lru_cache(maxsize=4096, typed=True)  # a cluster has a few hundred different ones, and each node's memory is its own
def _amount(written: object) -> int:
    """Text as API servers write it, or a number that stands in a file."""
    read = milli_value(written if isinstance(written, str) else str(written))
    return UNREADABLE if read is None else read


def units(thousandths: int) -> int:
    """Thousandths as units, rounded up. To round twice is to round once."""
    return -(-thousandths // MILLI)


_INT64_MAX: Final = 2**63 - 1
_PARSE_INT_MAX_CHARS: Final = 4300  # what int() takes; leading zeros may be many
_PARSE_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


def parse_int64(text: str) -> int | None:
    """Go's strconv.ParseInt(text, 10, 64): None where that fails. Unlike int(), no blanks, underscores or bignums."""
    if not _PARSE_INT.fullmatch(text) or len(text) > _PARSE_INT_MAX_CHARS:
        return None
    number = int(text)
    return number if -_INT64_MAX - 1 <= number <= _INT64_MAX else None
