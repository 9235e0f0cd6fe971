"""The time in which a call must be answered, from the `?timeout=` that the API server sends with it.

No I/O here: text in, seconds out. Invariant: a call always gets some time, even if its `timeout` can't be parsed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qs

DEFAULT_TIMEOUT_SECONDS: Final = 10.0  # admissionregistration.k8s.io/v1: the default of timeoutSeconds
MAX_TIMEOUT_SECONDS: Final = 30.0  # the same: the largest timeoutSeconds
MARGIN: Final = 0.2
"""The share of the caller's timeout that the webhook does not use.

The API server starts its clock before it dials. The share covers three round trips and about 2 ms of CPU for TCP and
TLS, the wait for the event loop, and the way back. Of 3 s it is 0.6 s, enough for one lost packet each way: Linux sends
a packet again after 0.2 s at the earliest.

The share does not cover the API server's rounding. It rounds the time up to whole seconds, also the rest of a request's
own deadline, so that "1s" can mean any part of a second.
"""

_UNIT_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = rf"([0-9]+\.?[0-9]*|\.[0-9]+)({'|'.join(_UNIT_SECONDS)})"
_PARTS: Final = re.compile(_PART)
_DURATION: Final = re.compile(f"(?:{_PART})+")


@lru_cache(maxsize=64)  # a cluster sends few different queries, so nearly no call parses one
def budget_seconds(query: str) -> float:
    """Return the seconds that a call with this query has: its `timeout`, or the default, less the margin."""
    seconds = _duration_seconds(parse_qs(query).get("timeout", [""])[0])
    return min(seconds or DEFAULT_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS) * (1 - MARGIN)


def _duration_seconds(text: str) -> float:
    """Return a Go duration in seconds; 0 if the text is not a duration, or is negative."""
    if not _DURATION.fullmatch(text):
        return 0.0
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PARTS.findall(text))
