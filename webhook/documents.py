"""YAML and JSON text -> Kubernetes objects that know the line they came from.

Reads as kubectl does: several documents, kind List, JSON. Timestamps stay strings and duplicate keys are errors, so
that what was read is what the API server would have been sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import yaml
from msgspec import Struct

from webhook.errors import UserError

_T = TypeVar("_T")
_PATH_STEP: Final = re.compile(r"\.([^.\[`]+)|\[(\d+|\.\.\.)\]")


class BadDocument(UserError):
    """Text that can't be read as Kubernetes objects: `file:line: what`."""


class Document(Struct, frozen=True):
    """One Kubernetes object as it was written: `source` names the file, `node` is its YAML tree with the marks."""

    source: str
    value: dict[str, Any]
    node: yaml.Node

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
        """`file:line` of the object's first line."""
        return _place(self.source, self.node)

    def read(self, type_: type[_T]) -> _T:
        """The object as `type_`.

        Raises:
            BadDocument: a field has the wrong type; names the field and its line.
        """
        try:
            return msgspec.convert(self.value, type_)
        except msgspec.ValidationError as error:
            what, _, path = str(error).partition(" - at `")
            steps = list(_PATH_STEP.finditer(path.rstrip("`").removeprefix("$")))
            field = "".join(step.group(0) for step in steps).lstrip(".")
            text = f"{field}: {what}" if field else what
            raise BadDocument(f"{_place(self.source, self._locate(steps))}: {self.kind}: {text}") from None

    def _locate(self, steps: list[re.Match[str]]) -> yaml.Node:
        """The deepest node on the path that is really there."""
        node = self.node
        for step in steps:
            key, index = step.group(1), step.group(2)
            if isinstance(node, yaml.MappingNode):
                inner = next((value for name, value in node.value if name.value == key), None)
            elif isinstance(node, yaml.SequenceNode) and index and index.isdecimal():
                inner = node.value[int(index)]
            else:
                inner = None
            if inner is None:
                break
            node = inner
        return node


def read(text: str, source: str) -> Iterator[Document]:
    """The objects in a YAML or JSON text; those of a List one by one. Empty documents are passed over.

    Args:
        source: what to call the text in an error: a file name, or stdin.

    Raises:
        BadDocument: a syntax error, a duplicate key, or a document that is no Kubernetes object.
    """
    loader = _Loader(_without_tabs(text))
    try:
        while loader.check_node():
            node = loader.get_node()
            value = loader.construct_document(node)
            if value is not None:
                yield from _objects(Document(source, value, node))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise BadDocument(f"{source}{line}: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadDocument(f"{source}: {str(error).splitlines()[0] or type(error).__name__}") from None
    finally:
        loader.dispose()


def read_file(path: Path) -> Iterator[Document]:
    """The objects in one file.

    Raises:
        BadDocument: it can't be read as UTF-8 text, or `read` refuses it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadDocument(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None
    except OSError as error:
        raise BadDocument(f"{path}: {error.strerror}") from None
    yield from read(text, str(path))


def _objects(document: Document) -> Iterator[Document]:
    value, node = document.value, document.node
    if not isinstance(value, dict):
        raise BadDocument(f"{document.place}: no Kubernetes object: got {_kind_of(value)}, expected a mapping")
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            got = _kind_of(value.get(field))
            raise BadDocument(f"{document.place}: no Kubernetes object: {field}: got {got}, expected a string")
    if not (value["kind"].endswith("List") and isinstance(value.get("items"), list)):
        yield document
        return
    items = next(inner for name, inner in node.value if name.value == "items")
    for item, item_node in zip(value["items"], items.value, strict=True):
        if not isinstance(item, dict):
            place = _place(document.source, item_node)
            raise BadDocument(f"{place}: no Kubernetes object: got {_kind_of(item)}, expected a mapping")
        inner = {"apiVersion": value["apiVersion"], "kind": value["kind"].removesuffix("List"), **item}
        yield from _objects(Document(document.source, inner, item_node))


def _without_tabs(text: str) -> str:
    """JSON may have tabs between its tokens, where YAML refuses them; in nothing else do the two differ here."""
    if "\t" not in text or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text.replace("\t", " ")


def _kind_of(value: object) -> str:
    names = {type(None): "nothing", str: "a string", list: "a list", dict: "a mapping", bool: "a boolean"}
    return names.get(type(value), "a number")


def _place(source: str, node: yaml.Node) -> str:
    return f"{source}:{node.start_mark.line + 1}"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Safe YAML without timestamps, and with an error where a key stands twice or is no string."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        seen: dict[str, yaml.Node] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a string", key.start_mark)
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value} stands twice", key.start_mark)
            seen[key.value] = key
        return {str(key): value for key, value in super().construct_mapping(node, deep=deep).items()}


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}
