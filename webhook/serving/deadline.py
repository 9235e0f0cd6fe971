"""By when a call must be answered, from the `?timeout=` that the API server sends with it.

Sans I/O: text to seconds. Invariant: whatever the caller wrote there, the call gets some time; it is never refused.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qs

DEFAULT_TIMEOUT_SECONDS: Final = 10.0  # admissionregistration.k8s.io/v1: timeoutSeconds where none is given
MAX_TIMEOUT_SECONDS: Final = 30.0  # the same: the longest timeoutSeconds that can be given
MARGIN: Final = 0.2
"""The share of the caller's time that is not ours.

Its clock runs from before it dials: three round trips and some 2 ms of CPU for TCP and TLS, our event loop's turn, the
way back. Of 3 s it is 0.6 s: room for a lost packet each way, which Linux sends again after 0.2 s at the earliest. That
the API server rounds its time up to whole seconds is not covered: it does so to what is left of a request's own
deadline too, where "1s" may stand for any part of a second.
"""

_UNIT_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = rf"([0-9]+\.?[0-9]*|\.[0-9]+)({'|'.join(_UNIT_SECONDS)})"
_PARTS: Final = re.compile(_PART)
_DURATION: Final = re.compile(f"(?:{_PART})+")


@lru_cache(maxsize=64)  # one query has a few spellings in a cluster: parsing it costs a call nothing
def budget_seconds(query: str) -> float:
    """How long a call with this query may take here: its timeout less the margin, the default's where it has none."""
    seconds = _duration_seconds(parse_qs(query).get("timeout", [""])[0])
    return min(seconds or DEFAULT_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS) * (1 - MARGIN)


def _duration_seconds(text: str) -> float:
    """Go's duration text in seconds; 0 for what is none, or is negative."""
    if not _DURATION.fullmatch(text):
        return 0.0
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PARTS.findall(text))
