"""Why a list or watch ended, and how long to wait."""

from __future__ import annotations

from enum import Enum
from typing import Final

_BACKOFF_SECONDS: Final = 0.1
_BACKOFF_MAX_SECONDS: Final = 10.0  # a sixth of a request a second from each cache: nothing to a server that is back
_FAILURES_MAX: Final = 10  # the back-off is at its longest by then
_RETRY_AFTER_MAX_SECONDS: Final = 60.0
_PAGE_OBJECTS_MAX: Final = 8_000


class Cause(Enum):
    """Why a list or watch came to an end other than the ordinary one; also the label it is counted under."""

    EXPIRED = "expired"  # 410: the server no longer has what happened since
    WENT_BACK = "went back"  # the server is older than what we have seen: restored from a backup
    CUT = "cut"
    SILENT = "silent"
    GARBAGE = "garbage"
    THROTTLED = "throttled"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_INSTALLED = "not installed"
    UNSUPPORTED = "unsupported"  # no streaming list: paged instead
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
