"""Decoders of an API server's answers: objects, pages of a list, events of a watch, and the Status of an error.

Invariant: no answer makes a decoder raise. An object that can't be decoded is left out of its page; the rest is used.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct, field

from webhook.kube.client.metadata import BareMeta

W = TypeVar("W")
_SENTENCE_CHARS: Final = 300
_NOT_FOUND: Final = 404
_NO_SUCH_KIND: Final = b"404 page not found"  # the API server's words for a path that it does not serve
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # all that msgspec raises


class Failure(Struct, frozen=True, kw_only=True):
    """Why the server refused.

    Attributes:
        code: the HTTP status, or the code of the Status in an ERROR event.
        sentence: code, reason and message on one line.
        absent: the API server has no such object, or no such kind. A 404 of a proxy on the way is not `absent`.
        too_new: the API server has not reached the resourceVersion of the request yet.
    """

    code: int
    sentence: str
    retry_after_seconds: float = 0.0
    absent: bool = False
    too_new: bool = False


class NotJSON(Struct, frozen=True):
    """Bytes that are not an answer of an API server. `why` is the decoder's message."""

    why: str


class WatchEvent(Struct, frozen=True):
    """One event of a watch (metav1.WatchEvent). `object` is None if its fields can't be decoded."""

    type: str
    meta: Any
    object: Any


class Page(Struct, frozen=True, kw_only=True):
    """A page of a list. `continue_token` is empty on the last page. `unreadable` objects are left out and counted."""

    items: list[Any]
    resource_version: str
    continue_token: str
    unreadable: int = 0


class _Cause(Struct):
    reason: str = ""


class _Details(Struct, rename="camel"):
    retry_after_seconds: float = 0.0
    causes: list[_Cause] | None = None


class _Status(Struct):
    """metav1.Status: why the API server refuses a request."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


class _Typed(Struct):
    type: str


class _ErrorEvent(Struct):
    object: _Status


class _Event(Struct, Generic[W], gc=False):
    type: str
    object: W


class _Bare(Struct, gc=False):
    metadata: BareMeta


class _ListMeta(Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = field(name="continue", default="")


class _List(Struct, Generic[W]):
    metadata: _ListMeta
    items: list[W] | None = None


class Decoders:
    """The decoders for one wire type. Each returns a NotJSON for bytes that are not an answer of an API server."""

    def __init__(self, wire: type[Any]) -> None:
        self._object = msgspec.json.Decoder(wire)
        self._event = msgspec.json.Decoder(_Event[wire])  # type: ignore[valid-type]
        self._type = msgspec.json.Decoder(_Typed)
        self._bare_event = msgspec.json.Decoder(_Event[_Bare])
        self._error_event = msgspec.json.Decoder(_ErrorEvent)
        self._list = msgspec.json.Decoder(_List[wire])  # type: ignore[valid-type]
        self._raw_list = msgspec.json.Decoder(_List[msgspec.Raw])
        self._status = msgspec.json.Decoder(_Status)

    def object(self, body: bytes) -> Any | NotJSON:
        """Decode one object."""
        try:
            return self._object.decode(body)
        except _UNREADABLE as error:
            return NotJSON(str(error))

    def event(self, line: bytes) -> WatchEvent | Failure | NotJSON:
        """One line of a watch."""
        try:
            event: _Event[Any] = self._event.decode(line)
        except msgspec.ValidationError:
            return self._odd_event(line)
        except _UNREADABLE as error:
            return NotJSON(str(error))
        if event.type == "ERROR":
            return self._odd_event(line)
        return _of(event.type, event.object.metadata, event.object)

    def _odd_event(self, line: bytes) -> WatchEvent | Failure | NotJSON:
        """Decode an ERROR event, or an event whose object has a field of a wrong type."""
        try:
            if self._type.decode(line).type == "ERROR":
                return _failure(self._error_event.decode(line).object, 0)
            event = self._bare_event.decode(line)
        except _UNREADABLE as error:
            return NotJSON(str(error))
        return _of(event.type, event.object.metadata, None)

    def page(self, body: bytes) -> Page | NotJSON:
        """Decode one page of a list."""
        try:
            found = self._list.decode(body)
        except msgspec.ValidationError:
            return self._odd_page(body)
        except _UNREADABLE as error:
            return NotJSON(str(error))
        return _page(found.metadata, found.items or [])

    def _odd_page(self, body: bytes) -> Page | NotJSON:
        try:
            found = self._raw_list.decode(body)
        except _UNREADABLE as error:
            return NotJSON(str(error))
        read = [self.object(bytes(raw)) for raw in found.items or ()]
        items = [item for item in read if not isinstance(item, NotJSON)]
        return _page(found.metadata, items, unreadable=len(read) - len(items))

    def failure(self, body: bytes, http_status: int) -> Failure:
        """Decode the body of an HTTP error. A body that is not a Status becomes part of the sentence."""
        try:
            return _failure(self._status.decode(body), http_status)
        except _UNREADABLE:
            shown = _printable(body.decode("latin-1"))
            absent = http_status == _NOT_FOUND and body.strip() == _NO_SUCH_KIND
            return Failure(code=http_status, sentence=f"{http_status}: {shown}", absent=absent)


def retry_after_seconds(header: str | None) -> float:
    """Return the seconds of a Retry-After header; 0 if there is none, or if it is a date."""
    return float(header) if header and header.isdecimal() else 0.0


def _of(type_: str, meta: Any, found: Any) -> WatchEvent | NotJSON:
    return WatchEvent(type_, meta, found) if meta.resource_version else NotJSON("an event without a resourceVersion")


def _page(meta: _ListMeta, items: list[Any], unreadable: int = 0) -> Page | NotJSON:
    if not meta.resource_version:  # other JSON, of a proxy perhaps: as a list it would be empty
        return NotJSON("a list without a resourceVersion")
    return Page(
        items=items, resource_version=meta.resource_version, continue_token=meta.continue_, unreadable=unreadable
    )


def _failure(status: _Status, http_status: int) -> Failure:
    # The HTTP status counts first: the `code` in a body may be that of a proxy before the API server.
    code, details = http_status or status.code, status.details or _Details()
    return Failure(
        code=code,
        sentence=_printable(f"{code} {status.reason}: {status.message}"),
        retry_after_seconds=details.retry_after_seconds,
        absent=code == _NOT_FOUND and status.reason == "NotFound",
        too_new=any(cause.reason == "ResourceVersionTooLarge" for cause in details.causes or ()),
    )


def _printable(text: str) -> str:
    """Return a server's words as one line of printable ASCII, 300 characters at most."""
    return ascii(" ".join(text.split())[:_SENTENCE_CHARS])[1:-1]
