"""The values of options: their text, and the types by which `certs.settings` declares them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from webhook.component_base.options import Parsed, seconds

ENVIRONMENT_PREFIX: Final = "KUBEVIRT_COSCHEDULE_CERTS_"
_DURATION: Final = re.compile(r"([0-9]{1,6})([dhms])")
_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_DNS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_FRACTION: Final = re.compile(r"0?\.[0-9]{1,4}|0|1(\.0+)?|[0-9]{1,2}/[0-9]{1,2}")


def duration(text: str) -> timedelta:
    """`30d`, `12h`, `15m` or `90s`.

    Raises:
        ValueError: says what was expected.
    """
    read = _DURATION.fullmatch(text)
    if not read or not int(read[1]):
        raise ValueError("expected a duration such as 30d, 12h, 15m or 90s")
    return timedelta(**{_UNITS[read[2]]: int(read[1])})


def fraction(text: str) -> float:
    """`0.5` or `2/3`.

    Raises:
        ValueError: says what was expected.
    """
    above, _, below = text.partition("/")
    if not _FRACTION.fullmatch(text) or (below and not int(below)):
        raise ValueError("expected a fraction between 0 and 1, such as 0.5 or 2/3")
    return float(above) / float(below or 1)


def dns_name(text: str) -> str:
    """A name as Kubernetes takes it.

    Raises:
        ValueError: says what was expected.
    """
    if not _DNS_NAME.fullmatch(text):
        raise ValueError("expected a DNS name of lower case letters, digits, - and .")
    return text


def dns_names(text: str) -> tuple[str, ...]:
    """DNS names and addresses, with commas between them.

    Raises:
        ValueError: says what was expected.
    """
    found = tuple(text.split(","))
    if not all(":" in name or _DNS_NAME.fullmatch(name) for name in found):
        raise ValueError("expected DNS names and addresses with commas between them, such as localhost,127.0.0.1")
    return found


DNS_NAME: Final = Parsed("NAME", dns_name)
DNS_NAMES: Final = Parsed("NAMES", dns_names)
DURATION: Final = Parsed("DURATION", duration)
FRACTION: Final = Parsed("FRACTION", fraction)
SECONDS_SPAN: Final = Parsed("SECONDS", lambda text: timedelta(seconds=seconds(text)))
