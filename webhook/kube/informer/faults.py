"""How a list or watch fails."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from webhook.component_base.client.status import Failure


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
