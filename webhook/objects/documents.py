"""YAML and JSON text -> Kubernetes objects with the lines on which they are.

The text is read as by kubectl: several documents, kind List, JSON. Timestamps stay strings and duplicate keys are
errors, so that an object is what kubectl would send to the API server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import yaml
from msgspec import Struct

from webhook.component_base.errors import UserError
from webhook.objects.fields import field_at, in_words
from webhook.objects.yaml_text import Loader, as_yaml

_T = TypeVar("_T")
_KIND: Final = ("apiVersion", "kind")
_GZIP: Final = b"\x1f\x8b"  # RFC 1952
_PATH_STEP: Final = re.compile(r"\.([^.\[`]+)|\[(\d+|\.\.\.)\]")


class BadDocument(UserError):
    """Text that can't be read as Kubernetes objects. The message starts with `file:line`."""


class Document(Struct, frozen=True):
    """One Kubernetes object.

    Attributes:
        source: the name of the file; for an object of an API server, words that name the object.
        value: the object as JSON.
        node: the YAML tree with the positions; None for an object that is not from YAML.
    """

    source: str
    value: dict[str, Any]
    node: yaml.Node | None = None

    @property
    def api_version(self) -> str:
        """The object's apiVersion."""
        return str(self.value["apiVersion"])

    @property
    def kind(self) -> str:
        """The object's kind."""
        return str(self.value["kind"])

    @property
    def place(self) -> str:
        """`file:line` of the object's first line; only the source if the object is not from YAML."""
        return _place(self.source, self.node) if self.node else self.source

    def read(self, type_: type[_T]) -> _T:
        """Return the object as `type_`.

        Raises:
            BadDocument: a field has the wrong type. The message names the field and its line.
        """
        try:
            return msgspec.convert(self.value, type_)
        except msgspec.ValidationError as error:
            message, _, path = str(error).partition(" - at `")
            what = in_words(message)
            steps = list(_PATH_STEP.finditer(path.rstrip("`").removeprefix("$")))
            field = "".join(step.group(0) for step in steps).lstrip(".")
            text = f"{field}: {what}" if field else what
            name = "" if self.node else f" {field_at(self.value, 'metadata', 'name') or '(no name)'}"
            raise BadDocument(f"{self._place(steps)}: {self.kind}{name}: {text}") from None

    def _place(self, steps: list[re.Match[str]]) -> str:
        """The file and line of the deepest existing node on the path."""
        node = self.node
        if node is None:
            return self.place
        for step in steps:
            key, index = step.groups()
            if isinstance(node, yaml.SequenceNode):
                inner = node.value[int(index)]
            else:
                inner = next((value for name, value in node.value if name.value == key), None)
            if inner is None:
                break
            node = inner
        return _place(self.source, node)


def read_documents(text: str, source: str) -> Iterator[Document]:
    """Yield the objects of a YAML or JSON text, and each object of a List. Empty documents are left out.

    Args:
        text: the YAML or JSON.
        source: the name of the text in errors: a file name, or stdin.

    Raises:
        BadDocument: a syntax error, a duplicate key, or a document that is not a Kubernetes object.
    """
    values = _json_objects(text)
    if values is None:
        if _is_json_sequence(text):
            raise BadDocument(
                f"{source}: several JSON documents one after another; expected one, or a List of them, as kubectl get "
                "-o json prints it"
            )
        yield from _read_yaml(as_yaml(text), source)
        return
    for value in values:
        yield Document(source, value)


def _json_objects(text: str) -> list[dict[str, Any]] | None:
    """The objects of a JSON text, without YAML: 35,000 take 1 s instead of 60.

    None for any other text, and for one with a fault: the reader of YAML says what is wrong in which line.
    """
    if text.lstrip()[:1] != "{":
        return None
    try:
        return list(_flattened(msgspec.json.decode(text), {}))
    except (TypeError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return None


def _flattened(value: Any, inherited: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The object, or each object of a List. `inherited`: the fields that a List says for all of its items."""
    value = {**inherited, **value} if isinstance(value, dict) else {}
    if not all(isinstance(value.get(field), str) and value[field] for field in _KIND):
        raise ValueError
    if not _is_list(value):
        yield value
        return
    items = value.get("items", "")
    if not isinstance(items, list | None):
        raise TypeError
    of_items = {"apiVersion": value["apiVersion"], "kind": value["kind"].removesuffix("List")}
    for item in items or ():
        yield from _flattened(item, of_items)


def _is_list(value: Mapping[str, Any]) -> bool:
    return str(value["kind"]).endswith("List") and ("items" in value or value["kind"] == "List")


def _is_json_sequence(text: str) -> bool:
    """Whether the text is a JSON object and something after it, as `kubectl get` for each name and jq print."""
    body = text.lstrip()
    if body[:1] != "{":
        return False
    try:
        _, end = json.JSONDecoder().raw_decode(body)
    except (ValueError, RecursionError):
        return False
    return body[end:].lstrip()[:1] == "{"


def _read_yaml(text: str, source: str) -> Iterator[Document]:
    loader = None
    try:
        loader = Loader(text)
        while loader.check_node():
            node: yaml.Node = loader.get_node()  # type: ignore[assignment] # not None, because check_node returned True
            value = loader.construct_document(node)
            if value is not None:
                yield from _objects(source, value, node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise BadDocument(f"{source}{line}: {error.problem or error.context}") from None
    except RecursionError:
        raise BadDocument(f"{source}: nested too deeply") from None
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:
        # PyYAML also raises errors of int(), dict and re, if a text does not fit its tag.
        raise BadDocument(f"{source}: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from None
    finally:
        if loader is not None:
            loader.dispose()


def read_file(path: Path) -> Iterator[Document]:
    """Yield the objects of one file.

    Raises:
        BadDocument: the file can't be read as UTF-8 text, or as `read_documents` says.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        if error.object.startswith(_GZIP):
            raise BadDocument(f"{path}: compressed by gzip; expected text: gunzip it first") from None
        raise BadDocument(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None
    except OSError as error:
        raise BadDocument(f"{path}: {error.strerror}; expected a YAML or JSON file") from None
    yield from read_documents(text, str(path))


def _objects(source: str, value: Any, node: yaml.Node) -> Iterator[Document]:
    place = _place(source, node)
    if not isinstance(value, dict):
        raise BadDocument(f"{place}: not a Kubernetes object: got {_kind_of(value)}, expected a mapping")
    for field in _KIND:
        if not isinstance(value.get(field), str) or not value[field]:
            got = _kind_of(value.get(field))
            raise BadDocument(f"{place}: not a Kubernetes object: {field}: got {got}, expected a string")
    if not _is_list(value):
        yield Document(source, value, node)
        return
    listed = value.get("items", "")
    if listed is None:
        return  # Go writes an empty list so
    if not isinstance(listed, list):
        raise BadDocument(f"{place}: {value['kind']}: items: got {_kind_of(listed or None)}, expected a list")
    items = next(inner for name, inner in node.value if name.value == "items")
    for item, item_node in zip(listed, items.value, strict=True):
        inherited = {"apiVersion": value["apiVersion"], "kind": value["kind"].removesuffix("List")}
        yield from _objects(source, {**inherited, **item} if isinstance(item, dict) else item, item_node)


def _kind_of(value: object) -> str:
    names = {type(None): "nothing", str: "a string", list: "a list", dict: "a mapping", bool: "a boolean"}
    return names.get(type(value), "a number")


def _place(source: str, node: yaml.Node) -> str:
    return f"{source}:{node.start_mark.line + 1}"
