"""JSON text -> its objects, each with its own text and line. No YAML: 35,000 objects take 2 s instead of 60.

Invariant: an object that has a fault has no value here. The reader of YAML then reads it, and says what is wrong where.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct


class JSONText(Struct, frozen=True):
    """The text of one object. `line` counts from 1. `inherited`: the fields that its List says for all of its items."""

    text: bytes
    line: int
    inherited: Mapping[str, str] = {}

    @property
    def value(self) -> dict[str, Any] | None:
        """The object; None if it has a fault."""
        try:
            return {**self.inherited, **_object(self.text)}
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
            return None


class _List(Struct, rename="camel"):
    kind: str
    api_version: str
    items: list[Raw] | None


def json_texts(text: str) -> list[JSONText]:
    """Return the object that the text is, or each object of a List; none for any other text."""
    body = text.lstrip()
    if body[:1] != "{":
        return []
    try:
        return list(_texts(JSONText(body.rstrip().encode(), text.count("\n", 0, len(text) - len(body)) + 1)))
    except (ValueError, RecursionError):
        return []


def is_json_sequence(text: str) -> bool:
    """Whether the text is a JSON object and something after it, as `kubectl get` for each name and jq print."""
    body = text.lstrip()
    if body[:1] != "{":
        return False
    try:
        _, end = json.JSONDecoder().raw_decode(body)
    except (ValueError, RecursionError):
        return False
    return body[end:].lstrip()[:1] == "{"


def _texts(whole: JSONText) -> Iterator[JSONText]:
    text, line = whole.text, whole.line
    try:
        listed = msgspec.json.decode(text, type=_List)
    except msgspec.ValidationError:
        listed = None
    if listed is None or not listed.kind.endswith("List"):
        yield whole
        return
    start = text.index(b"[", text.index(b'"items"')) + 1 if listed.items else 0
    counted, end = 0, start
    inherited = {"apiVersion": listed.api_version, "kind": listed.kind.removesuffix("List")}
    for raw in listed.items or ():
        item = bytes(raw)
        at = text.index(item, end)
        line += text.count(b"\n", counted, at)
        yield from _texts(JSONText(item, line, inherited)) if b'List"' in item else [JSONText(item, line, inherited)]
        counted, end = at, at + len(item)
    _unique(text[:start] + text[end:] if listed.items else text)


def _object(text: bytes) -> dict[str, Any]:
    value = msgspec.json.decode(text, type=dict[str, Any])
    # An object that msgspec writes as it was has each key once. Another one can have a key twice, or a long number.
    if msgspec.json.encode(value) == msgspec.json.format(text, indent=-1):
        return value
    found: dict[str, Any] = _unique(text)
    return found


def _unique(text: bytes) -> Any:
    return json.loads(text, object_pairs_hook=_mapping)


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is used twice")
    return found
