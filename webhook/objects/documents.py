"""YAML and JSON text -> Kubernetes objects with the lines on which they are.

The text is read as by kubectl: several documents, kind List, JSON. Timestamps stay strings and duplicate keys are
errors, so that an object is what kubectl would send to the API server.
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
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.cyaml import CParser  # type: ignore[attr-defined] # its stub imports it
from yaml.resolver import Resolver

from webhook.component_base.errors import UserError
from webhook.objects.json_text import json_objects
from webhook.objects.wrong_type import in_words

_T = TypeVar("_T")
_SURROGATE_PAIR: Final = re.compile(r"\\\\|\\u([dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_PATH_STEP: Final = re.compile(r"\.([^.\[`]+)|\[(\d+|\.\.\.)\]")


class BadDocument(UserError):
    """Text that can't be read as Kubernetes objects. The message starts with `file:line`."""


class Document(Struct, frozen=True):
    """One Kubernetes object.

    Attributes:
        source: the name of the file; for an object of an API server, words that name the object.
        value: the object as JSON.
        node: the YAML tree with the positions; None for an object that is not from YAML.
        line: the first line of an object from JSON; 0 for any other.
        text: of an object from JSON; empty for any other.
    """

    source: str
    value: dict[str, Any]
    node: yaml.Node | None = None
    line: int = 0
    text: bytes = b""

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
        """`file:line` of the object's first line; only the source if the object is not from a file."""
        line = self.node.start_mark.line + 1 if self.node else self.line
        return f"{self.source}:{line}" if line else self.source

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
            raise BadDocument(f"{self._place(steps)}: {self.kind}: {text}") from None

    def _place(self, steps: list[re.Match[str]]) -> str:
        """The file and line of the deepest existing node on the path."""
        node = self.node or (_compose(self.text.decode(), self.line) if self.text else None)
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
    objects = json_objects(text)
    if objects:
        yield from (Document(source, each.value, line=each.line, text=each.text) for each in objects)
        return
    loader = None
    try:
        loader = _Loader(_as_yaml(text))
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
        raise BadDocument(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None
    except OSError as error:
        raise BadDocument(f"{path}: {error.strerror}; expected a YAML or JSON file") from None
    yield from read_documents(text, str(path))


def _objects(source: str, value: Any, node: yaml.Node) -> Iterator[Document]:
    place = _place(source, node)
    if not isinstance(value, dict):
        raise BadDocument(f"{place}: not a Kubernetes object: got {_kind_of(value)}, expected a mapping")
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            got = _kind_of(value.get(field))
            raise BadDocument(f"{place}: not a Kubernetes object: {field}: got {got}, expected a string")
    if not (value["kind"].endswith("List") and ("items" in value or value["kind"] == "List")):
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


def _compose(text: str, line: int) -> yaml.Node:
    """Return the YAML tree of a JSON text that begins on this line."""
    loader = _Loader("\n" * (line - 1) + _as_yaml(text))
    try:
        node: yaml.Node = loader.get_single_node()  # type: ignore[assignment] # the text is one object
        return node
    finally:
        loader.dispose()


def _as_yaml(text: str) -> str:
    """JSON as YAML. They differ in surrogate pairs, and in tabs before the first bracket."""
    body = text.lstrip()
    if body[:1] not in ("{", "["):
        return text
    return text[: -len(body)].replace("\t", " ") + _SURROGATE_PAIR.sub(_pair, body)


def _pair(escape: re.Match[str]) -> str:
    """JSON writes a character beyond 16 bits as two escapes, which YAML does not know. Other escapes stay."""
    return escape.group(0) if escape.group(1) is None else str(json.loads(f'"{escape.group(0)}"'))


def _kind_of(value: object) -> str:
    names = {type(None): "nothing", str: "a string", list: "a list", dict: "a mapping", bool: "a boolean"}
    return names.get(type(value), "a number")


def _place(source: str, node: yaml.Node) -> str:
    return f"{source}:{node.start_mark.line + 1}"


class _Loader(Composer, CParser, SafeConstructor, Resolver):
    """Safe YAML without timestamps. A key that is used twice, or is not a string, is an error.

    libyaml parses and Python composes, because libyaml's composer crashes on a deeply nested text.
    """

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Compose a mapping. Its keys are checked before PyYAML merges others into it."""
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a string", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value} is used twice", key.start_mark)
            seen.add(key.value)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        """Construct a mapping with its keys as text, because keys of JSON are strings."""
        self.flatten_mapping(node)
        return {key.value: self.construct_object(value, deep=deep) for key, value in node.value}


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in Resolver.yaml_implicit_resolvers.items()
}
