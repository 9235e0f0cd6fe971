"""What an API server sends, decoded: pages of a list, events of a watch, and its Status when it refuses.

Invariant: nothing here raises on what a server sends. One object that can't be read spoils itself, not its page.
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
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # all that msgspec raises on bytes


class Failure(Struct, frozen=True, kw_only=True):
    """Why the server refused.

    `absent`: it says that there is no such object, or no such kind; a 404 of anybody else on the way says nothing.
    `too_new`: it has not come to the resourceVersion that we know of yet.
    """

    code: int
    sentence: str
    retry_after_seconds: float = 0.0
    absent: bool = False
    too_new: bool = False


class NotJSON(Struct, frozen=True):
    """Bytes that no API server sends."""

    why: str


class Event(Struct, frozen=True):
    """One event of a watch; `object` is None where its fields can't be read."""

    type: str
    meta: Any
    object: Any


class Page(Struct, frozen=True, kw_only=True):
    """A page of a list; `continue_token` is empty on the last one. `unreadable` objects are left out."""

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
    """metav1.Status."""

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
    """The decoders for one wire type."""

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
        """One object."""
        try:
            return self._object.decode(body)
        except _UNREADABLE as error:
            return NotJSON(str(error))

    def event(self, line: bytes) -> Event | Failure | NotJSON:
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

    def _odd_event(self, line: bytes) -> Event | Failure | NotJSON:
        """A Status, or an object with a field that has not the type its kind gives it."""
        try:
            if self._type.decode(line).type == "ERROR":
                return _failure(self._error_event.decode(line).object, 0)
            event = self._bare_event.decode(line)
        except _UNREADABLE as error:
            return NotJSON(str(error))
        return _of(event.type, event.object.metadata, None)

    def page(self, body: bytes) -> Page | NotJSON:
        """One answer to a list."""
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
        """The body of an HTTP error; what is no Status is shown as it is."""
        try:
            return _failure(self._status.decode(body), http_status)
        except _UNREADABLE:
            shown = _shown(body.decode("latin-1"))
            absent = http_status == _NOT_FOUND and body.strip() == _NO_SUCH_KIND
            return Failure(code=http_status, sentence=f"{http_status}: {shown}", absent=absent)


def _of(type_: str, meta: Any, found: Any) -> Event | NotJSON:
    return Event(type_, meta, found) if meta.resource_version else NotJSON("an event without a resourceVersion")


def _page(meta: _ListMeta, items: list[Any], unreadable: int = 0) -> Page | NotJSON:
    if not meta.resource_version:  # some other JSON, of a proxy perhaps: taken for a list it would be an empty one
        return NotJSON("a list without a resourceVersion")
    return Page(
        items=items, resource_version=meta.resource_version, continue_token=meta.continue_, unreadable=unreadable
    )


def _failure(status: _Status, http_status: int) -> Failure:
    # An HTTP status is the API server's own; a `code` in a body may be of anybody who stands before it.
    code, details = http_status or status.code, status.details or _Details()
    return Failure(
        code=code,
        sentence=_shown(f"{code} {status.reason}: {status.message}"),
        retry_after_seconds=details.retry_after_seconds,
        absent=code == _NOT_FOUND and status.reason == "NotFound",
        too_new=any(cause.reason == "ResourceVersionTooLarge" for cause in details.causes or ()),
    )


def _shown(text: str) -> str:
    """A server's words, fit for a sentence of ours: one line, short, printable."""
    return ascii(" ".join(text.split())[:_SENTENCE_CHARS])[1:-1]
