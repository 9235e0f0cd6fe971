"""YAML and JSON text -> Kubernetes objects with the lines on which they are.

The text is read as by kubectl: several documents, kind List, JSON. Timestamps stay strings and duplicate keys are
errors, so that an object is what kubectl would send to the API server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import yaml
from msgspec import Struct

from webhook.component_base.errors import UserError
from webhook.objects.fields import in_words
from webhook.objects.text.json_text import is_json_sequence, json_texts
from webhook.objects.text.yaml_text import Loader, as_yaml, compose, on_line

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
        node = self.node or (compose(self.text.decode(), self.line) if self.text else None)
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
    texts = json_texts(text)
    for each in texts:
        value = each.value
        if value is not None and all(isinstance(value.get(key), str) and value[key] for key in _KIND):
            yield Document(source, value, line=each.line, text=each.text)
        else:
            _refuse_sequence(text, source)
            yield from _read_yaml(on_line(each.text.decode(), each.line), source, each.inherited)
    if not texts:
        _refuse_sequence(text, source)
        yield from _read_yaml(as_yaml(text), source, {})


def _refuse_sequence(text: str, source: str) -> None:
    if is_json_sequence(text):
        raise BadDocument(
            f"{source}: several JSON documents one after another; expected one, or a List of them, as kubectl get -o "
            "json prints it"
        )


def _read_yaml(text: str, source: str, inherited: Mapping[str, str]) -> Iterator[Document]:
    """As `read_documents`, for YAML. `inherited`: the fields that a List says for all of its items."""
    loader = None
    try:
        loader = Loader(text)
        while loader.check_node():
            node: yaml.Node = loader.get_node()  # type: ignore[assignment] # not None, because check_node returned True
            value = loader.construct_document(node)
            if value is not None or inherited:
                yield from _objects(source, {**inherited, **value} if isinstance(value, dict) else value, node)
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


def _kind_of(value: object) -> str:
    names = {type(None): "nothing", str: "a string", list: "a list", dict: "a mapping", bool: "a boolean"}
    return names.get(type(value), "a number")


def _place(source: str, node: yaml.Node) -> str:
    return f"{source}:{node.start_mark.line + 1}"
