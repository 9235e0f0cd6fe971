"""YAML and JSON text -> Kubernetes objects with the lines on which they are.

The text is read as by kubectl: several documents, kind List, JSON. Timestamps stay strings and duplicate keys are
errors, so that an object is what kubectl would send to the API server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec
import yaml
from msgspec import Struct
from yaml.composer import Composer
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.cyaml import CParser  # type: ignore[attr-defined] # its stub imports it
from yaml.resolver import Resolver

from webhook.component_base.errors import UserError

_T = TypeVar("_T")
_REPEATED_MAX: Final = 1 << 20  # nodes: an object of etcd's 1.5 MB has fewer
_TOO_MUCH: Final = "aliases repeat too much; expected a text without aliases, as kubectl get -o yaml prints it"
_TYPES: Final = re.compile(r"^Expected `([^`]+)`, got `([^`]+)`$")  # how msgspec names a wrong type
_WORDS: Final = {
    "array": "a list",
    "bool": "a boolean",
    "float": "a number",
    "int": "a number",
    "null": "nothing",
    "object": "a mapping",
    "str": "a string",
}
_PYTHON: Final = {"dict": "object", "list": "array", "NoneType": "null"}  # the types that msgspec names otherwise


class BadDocument(UserError):
    """Text that can't be read as Kubernetes objects. The message starts with `file:line`."""


class Document(Struct, frozen=True):
    """One Kubernetes object.

    Attributes:
        source: the name of the file; for an object of an API server, words that name the object.
        value: the object as JSON.
        line: of YAML the object's first line; 0 for an object that is not from YAML.
    """

    source: str
    value: dict[str, Any]
    line: int = 0

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
        return _place(self.source, self.line)

    def read(self, type_: type[_T]) -> _T:
        """Return the object as `type_`.

        Raises:
            BadDocument: a field has the wrong type. The message names the field, and the object's line.
        """
        try:
            return msgspec.convert(self.value, type_)
        except msgspec.ValidationError as error:
            message, _, path = str(error).partition(" - at `")
            field = path.rstrip("`").removeprefix("$").lstrip(".")
            what = _TYPES.sub(_expected_and_got, message)
            name = "" if self.line else f" {field_at(self.value, 'metadata', 'name') or '(no name)'}"
            raise BadDocument(f"{self.place}: {self.kind}{name}: {f'{field}: ' if field else ''}{what}") from None


def _expected_and_got(wrong: re.Match[str]) -> str:
    """The types of Python and JSON in the words of this module; a number or boolean can be made a string."""
    wanted, got = ([_WORDS.get(name, name) for name in names.split(" | ")] for names in wrong.groups())
    expected = " or ".join(name for name in wanted if name != "nothing")
    hint = ": put the value in quotes" if "a string" in wanted and got[0] in ("a number", "a boolean") else ""
    return f"got {got[0]}, expected {expected}{hint}"


def field_at(value: Any, *path: str) -> Any:
    """Return the field at `path` of any JSON, or None if a step of the path is absent, null or not an object."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def read_documents(text: str, source: str) -> Iterator[Document]:
    """Yield the objects of a YAML or JSON text, and each object of a List. Empty documents are left out.

    JSON is read without YAML: 35,000 objects take 1 s instead of 60. Of JSON with a fault the reader of YAML says what
    is wrong in which line.

    Args:
        text: the YAML or JSON.
        source: the name of the text in errors: a file name, or stdin.

    Raises:
        BadDocument: a syntax error, a duplicate key, or a document that is not a Kubernetes object.
    """
    if text.lstrip()[:1] == "{":
        try:
            found = list(_objects(source, msgspec.json.decode(text), None))
        except (BadDocument, ValueError, RecursionError):  # msgspec's errors are ValueErrors
            pass
        else:
            yield from found
            return
    yield from _read_yaml(text, source)


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
        mark, problem = error.problem_mark or error.context_mark, error.problem or error.context
        if text.lstrip()[:1] == "{" and "document start" in str(problem):
            problem = "a second JSON document; expected one, or a List of them, as kubectl get -o json prints it"
        line = f":{mark.line + 1}" if mark else ""
        raise BadDocument(f"{source}{line}: {problem}") from None
    except RecursionError:
        raise BadDocument(f"{source}: nested too deeply") from None
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:
        # PyYAML also raises errors of int(), dict and re, if a text does not fit its tag.
        raise BadDocument(f"{source}: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from None
    finally:
        if loader is not None:
            loader.dispose()


def _objects(source: str, value: Any, node: yaml.Node | None) -> Iterator[Document]:
    """The object, or each object of a List, to which the List's own apiVersion and kind are defaults."""
    line = node.start_mark.line + 1 if node else 0
    place = _place(source, line)
    if not isinstance(value, dict):
        raise BadDocument(f"{place}: not a Kubernetes object: got {_kind_of(value)}, expected a mapping")
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            got = _kind_of(value.get(field))
            raise BadDocument(f"{place}: not a Kubernetes object: {field}: got {got}, expected a string")
    if not value["kind"].endswith("List") or ("items" not in value and value["kind"] != "List"):
        yield Document(source, value, line)
        return
    listed = value.get("items", "")
    if not isinstance(listed, list | None):  # Go writes an empty list as null
        raise BadDocument(f"{place}: {value['kind']}: items: got {_kind_of(listed or None)}, expected a list")
    nodes = next((inner.value for name, inner in node.value if name.value == "items"), ()) if node else ()
    inherited = {"apiVersion": value["apiVersion"], "kind": value["kind"].removesuffix("List")}
    for number, item in enumerate(listed or ()):
        whole = {**inherited, **item} if isinstance(item, dict) else item
        yield from _objects(source, whole, nodes[number] if nodes else None)


def _kind_of(value: object) -> str:
    name = type(value).__name__
    return _WORDS.get(_PYTHON.get(name, name), name)


def _place(source: str, line: int) -> str:
    return f"{source}:{line}" if line else source


class Loader(Composer, CParser, SafeConstructor, Resolver):
    """Safe YAML without timestamps. A key that is used twice, or is not a string, is an error.

    libyaml parses and Python composes, because libyaml's composer crashes on a deeply nested text.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in Resolver.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)
        self._composed = self._repeated = 0  # nodes
        self._sizes: dict[str | None, int] = {}  # of the nodes with anchors

    def compose_node(self, parent: Any, index: Any) -> yaml.Node:
        """Compose a node. What aliases repeat is bounded: a few lines of them can stand for a text without end."""
        event: Any = self.peek_event()
        is_alias, begun, anchor = self.check_event(yaml.AliasEvent), self._composed, getattr(event, "anchor", None)
        node: yaml.Node = super().compose_node(parent, index)  # type: ignore[assignment] # there is one, as in get_node
        if is_alias:
            size = self._sizes.get(anchor, _REPEATED_MAX + 1)  # without a size it is inside of what it repeats
            self._repeated += size
            self._composed += size
            if self._repeated > _REPEATED_MAX:
                raise ConstructorError(None, None, _TOO_MUCH, event.start_mark)
        self._composed += 1
        if anchor:
            self._sizes[anchor] = self._composed - begun
        if parent is None:  # anchors are of one document
            self._sizes.clear()
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Compose a mapping. Its keys are checked before PyYAML merges others into it."""
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConstructorError(None, None, "a key must be a string", key.start_mark)
            if key.value in seen:
                raise ConstructorError(None, None, f"key {key.value} is used twice", key.start_mark)
            seen.add(key.value)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        """Construct a mapping with its keys as text, because keys of JSON are strings."""
        self.flatten_mapping(node)
        return {key.value: self.construct_object(value, deep=deep) for key, value in node.value}
