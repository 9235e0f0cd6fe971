"""Decoders of an API server's answers: objects, pages of a list, and events of a watch. They know no rule of core.

Invariant: no answer makes a decoder raise. An object that can't be decoded is left out of its page; the rest is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct, field

from webhook.component_base.client.transport import ApiStatus, Failure
from webhook.kube.nesting import shallow

W = TypeVar("W")
_Found = TypeVar("_Found")
_UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError)


class NotJSON(Struct, frozen=True):
    """Bytes that are not an answer of an API server. `why` is the decoder's message."""

    why: str


class WatchEvent(Struct, frozen=True):
    """One event of a watch (metav1.WatchEvent). `object` is None in a bookmark, or if its fields can't be decoded."""

    type: str
    meta: Any
    object: Any


class Page(Struct, frozen=True, kw_only=True):
    """A page of a list. `continue_token` is empty on the last page. `unreadable` objects are left out and counted."""

    items: list[Any]
    resource_version: str
    continue_token: str
    unreadable: int = 0


class Large(Protocol):
    """A type that a long object is decoded to first, with its fields as JSON. Shorter ones are decoded at once."""

    WHOLE_BYTES_MAX: ClassVar[int]

    def shortened(self) -> bytes:
        """Return the object as JSON without its long fields. Raises msgspec.DecodeError for a field of a wrong type."""
        ...


class _Typed(Struct):
    type: str


class _ErrorEvent(Struct):
    object: ApiStatus


class _Event(Struct, Generic[W], gc=False):
    type: str
    object: W


class _Annotations(Struct, gc=False):
    initial_events_end: str | None = field(name="k8s.io/initial-events-end", default=None)


class _BareMeta(Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: _Annotations | None = None

    @property
    def ends_list(self) -> bool:
        """Whether this is the bookmark that ends a streaming list."""
        return self.annotations is not None and self.annotations.initial_events_end == "true"


class _Bare(Struct, gc=False):
    metadata: _BareMeta


class _ListMeta(Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = field(name="continue", default="")


class _List(Struct, Generic[W]):
    metadata: _ListMeta
    items: list[W] | None = None


def _at_any_depth(decode: Callable[[Any, Any], _Found]) -> Callable[[Any, Any], _Found]:
    """Decode a body that nests too deeply without what is nested deepest."""

    @wraps(decode)
    def decode_again(self: Any, body: bytes | msgspec.Raw) -> _Found:
        try:
            return decode(self, body)
        except RecursionError:
            return decode(self, shallow(bytes(body)))

    return decode_again


class Decoders:
    """The decoders for one wire type. Each returns a NotJSON for bytes that are not an answer of an API server.

    If there is a type for `large` objects, these are shortened first.
    """

    def __init__(self, wire: type[Any], large: type[Large] | None = None) -> None:
        self._whole_bytes_max = large.WHOLE_BYTES_MAX if large else None
        self._large = msgspec.json.Decoder(large)
        self._large_event = msgspec.json.Decoder(_Event[large])  # type: ignore[valid-type]
        self._object = msgspec.json.Decoder(wire)
        self._event = msgspec.json.Decoder(_Event[wire])  # type: ignore[valid-type]
        self._type = msgspec.json.Decoder(_Typed)
        self._bare_event = msgspec.json.Decoder(_Event[_Bare])
        self._error_event = msgspec.json.Decoder(_ErrorEvent)
        self._list = msgspec.json.Decoder(_List[wire])  # type: ignore[valid-type]
        self._raw_list = msgspec.json.Decoder(_List[msgspec.Raw])

    @_at_any_depth
    def object(self, body: bytes | msgspec.Raw) -> Any | NotJSON:
        """Decode one object."""
        try:
            return self._object.decode(self._large.decode(body).shortened() if self._is_large(body) else body)
        except _UNDECODABLE as error:
            return NotJSON(str(error))

    @_at_any_depth
    def event(self, line: bytes) -> WatchEvent | Failure | NotJSON:
        """One line of a watch."""
        try:
            event: _Event[Any] = self._event.decode(self._shortened_event(line) if self._is_large(line) else line)
        except msgspec.ValidationError:
            return self._odd_event(line)
        except _UNDECODABLE as error:
            return NotJSON(str(error))
        if event.type in {"ERROR", "BOOKMARK"}:
            return self._odd_event(line)
        return _of(event.type, event.object.metadata, event.object)

    def _is_large(self, body: bytes | msgspec.Raw) -> bool:
        return self._whole_bytes_max is not None and len(body) > self._whole_bytes_max

    def _shortened_event(self, line: bytes) -> bytes:
        event: _Event[Large] = self._large_event.decode(line)
        return msgspec.json.encode({"type": event.type, "object": msgspec.Raw(event.object.shortened())})

    def _odd_event(self, line: bytes) -> WatchEvent | Failure | NotJSON:
        """Decode an ERROR event, a bookmark, or an event whose object has a field of a wrong type."""
        try:
            if self._type.decode(line).type == "ERROR":
                return self._error_event.decode(line).object.failure()
            event = self._bare_event.decode(line)
        except _UNDECODABLE as error:
            return NotJSON(str(error))
        return _of(event.type, event.object.metadata, None)

    @_at_any_depth
    def page(self, body: bytes) -> Page | NotJSON:
        """Decode one page of a list."""
        if self._whole_bytes_max is not None:
            return self._odd_page(body)
        try:
            found = self._list.decode(body)
        except msgspec.ValidationError:
            return self._odd_page(body)
        except _UNDECODABLE as error:
            return NotJSON(str(error))
        return _page(found.metadata, found.items or [])

    def _odd_page(self, body: bytes) -> Page | NotJSON:
        """Decode a page object by object: some may be large, or have a field of a wrong type."""
        try:
            found = self._raw_list.decode(body)
        except _UNDECODABLE as error:
            return NotJSON(str(error))
        read = [self.object(raw) for raw in found.items or ()]
        items = [item for item in read if not isinstance(item, NotJSON)]
        return _page(found.metadata, items, unreadable=len(read) - len(items))


def is_before(version: str, than: str) -> bool:
    """Return whether a resourceVersion is older: decimal numbers, of any length, can be compared (KEP-5504)."""
    return version.isdecimal() and than.isdecimal() and (len(version), version) < (len(than), than)


def _of(type_: str, meta: Any, found: Any) -> WatchEvent | NotJSON:
    return WatchEvent(type_, meta, found) if meta.resource_version else NotJSON("an event without a resourceVersion")


def _page(meta: _ListMeta, items: list[Any], unreadable: int = 0) -> Page | NotJSON:
    if not meta.resource_version:  # other JSON, of a proxy perhaps: as a list it would be empty
        return NotJSON("a list without a resourceVersion")
    return Page(
        items=items, resource_version=meta.resource_version, continue_token=meta.continue_, unreadable=unreadable
    )


_PAGE_MAX_BYTES: Final = 32 * 1024 * 1024  # a page of usual objects has 1 to 5 MB; it is in memory twice
_LINE_MAX_BYTES: Final = 16 * 1024 * 1024  # ten times the largest object that etcd takes
_ERROR_MAX_BYTES: Final = 64 * 1024


class Framing:
    """The bytes that are not decoded yet. What comes out depends on the bytes, not on how they were cut into pieces."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def clear(self) -> None:
        """Begin a new answer."""
        self._rest.clear()

    @property
    def body(self) -> bytes:
        """The bytes that were taken in and not returned as lines; empty if there are none."""
        return bytes(self._rest)

    def add_error(self, piece: bytes) -> None:
        """Take in a piece of an HTTP error's body. Only the first 64 KiB count."""
        self._rest += piece[: _ERROR_MAX_BYTES - len(self._rest)]

    def add_page(self, piece: bytes) -> str:
        """Take in a piece of a page. Return what is wrong with the page; empty if it is not too long."""
        self._rest += piece
        return f"a list of more than {_PAGE_MAX_BYTES} bytes" if len(self._rest) > _PAGE_MAX_BYTES else ""

    def add_lines(self, piece: bytes) -> list[bytes]:
        """Take in a piece of a watch. Return the lines that are whole now, without empty ones."""
        if b"\n" not in piece:
            self._rest += piece
            return []
        lines = (bytes(self._rest) + piece).split(b"\n")
        self._rest[:] = lines.pop()
        return [line for line in lines if line]

    def excess(self, line: bytes | None = None) -> str:
        """Return what is wrong with a line (by default the one that is not whole yet); empty if it is not too long."""
        size = len(self._rest if line is None else line)
        return f"an event of more than {_LINE_MAX_BYTES} bytes" if size > _LINE_MAX_BYTES else ""
