"""What a list-watch asks for next."""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct

from webhook.kube.informer.freshness import SILENCE_SECONDS

_WATCH_SECONDS: Final = 300  # the server ends a watch after this to twice this, so that clients spread over servers


class Request(Struct, frozen=True):
    """GET the collection with this query; give up when nothing came for `silence_seconds`."""

    query: tuple[tuple[str, str], ...]
    silence_seconds: float = SILENCE_SECONDS


class Wait(Struct, frozen=True):
    """Ask again in so many seconds."""

    seconds: float


class _Doing(Enum):
    NOTHING = "nothing"
    STREAM = "streaming list"
    PAGE = "paged list"
    WATCH = "watch"
