"""How a list or watch fails, and how long to wait before the next request."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import inf
from typing import Final, NamedTuple

from webhook.component_base.client.status import Failure

_BACKOFF_SECONDS: Final = 0.1
_BACKOFF_MAX_SECONDS: Final = 10.0  # each cache then sends 6 requests a minute, which costs the API server nothing
_FAILURES_MAX: Final = 10  # 0.1 s doubled 10 times is more than the maximum
_RETRY_AFTER_MAX_SECONDS: Final = 60.0


class Cause(Enum):
    """Why a list or watch ended too early. The metric kubevirt_coschedule_cache_interruptions_total has it as label."""

    EXPIRED = "expired"  # 410: the API server no longer has the events since this resourceVersion
    WENT_BACK = "went back"  # the API server's resourceVersion is lower than before: restored from a backup
    CUT = "cut"
    SILENT = "silent"
    GARBAGE = "garbage"
    THROTTLED = "throttled"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_INSTALLED = "not installed"
    UNSUPPORTED = "unsupported"  # the API server has no streaming lists: paged lists follow
    ERROR = "error"


_CAUSES: Final = {
    401: Cause.UNAUTHORIZED,
    403: Cause.FORBIDDEN,
    404: Cause.NOT_INSTALLED,
    410: Cause.EXPIRED,
    429: Cause.THROTTLED,
    503: Cause.THROTTLED,
}
_KEEPS_VERSION: Final = (Cause.UNAUTHORIZED, Cause.FORBIDDEN, Cause.THROTTLED)


class Fault(NamedTuple):
    """Why an answer is of no use: the cause, and a sentence for the log and /readyz."""

    cause: Cause
    sentence: str


def cause_of(failure: Failure) -> Cause:
    """Return the cause for the status code of a failure."""
    return _CAUSES.get(failure.code, Cause.ERROR)


def needs_list(failure: Failure) -> bool:
    """Return whether the same request would fail again, so that only a new list helps."""
    if cause_of(failure) in _KEEPS_VERSION:
        return False
    return failure.too_new or 400 <= failure.code < 500  # noqa: PLR2004 - HTTP's own numbers


class Backoff:
    """The wait after failures: doubled each time, from 0.1 s to 10 s, and at least the server's Retry-After.

    All times are seconds of a clock that only goes forward. `random` returns numbers from 0 to 1: clients that failed
    at the same time come back at different times.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._failures = 0
        self._not_before = -inf

    def wait(self, now: float) -> float:
        """Return the seconds until the next request is due; 0 or less if it is due now."""
        return self._not_before - now

    def failed(self, now: float, retry_after_seconds: float) -> None:
        """Take a failure into account. The server asked for `retry_after_seconds`; at most 60 s of it count."""
        backoff = min(_BACKOFF_SECONDS * 2.0**self._failures, _BACKOFF_MAX_SECONDS) * (1 + self._random()) / 2
        asked = min(retry_after_seconds, _RETRY_AFTER_MAX_SECONDS) * (1 + self._random() / 4)
        self._not_before = now + max(backoff, asked)
        self._failures = min(self._failures + 1, _FAILURES_MAX)

    def succeeded(self) -> None:
        """End the run of failures: the next one waits the shortest time."""
        self._failures = 0
