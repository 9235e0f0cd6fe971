"""YAML text -> trees of nodes, and objects: as kubectl reads it.

Timestamps stay strings, and duplicate keys are errors.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.cyaml import CParser  # type: ignore[attr-defined] # its stub imports it
from yaml.resolver import Resolver

_SURROGATE_PAIR: Final = re.compile(r"\\\\|\\u([dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}")


def as_yaml(text: str) -> str:
    """Return JSON as YAML. They differ in surrogate pairs, and in tabs before the first bracket."""
    body = text.lstrip()
    if body[:1] not in ("{", "["):
        return text
    return text[: -len(body)].replace("\t", " ") + _SURROGATE_PAIR.sub(_pair, body)


def _pair(escape: re.Match[str]) -> str:
    """JSON writes a character beyond 16 bits as two escapes, which YAML does not know. Other escapes stay."""
    return escape.group(0) if escape.group(1) is None else str(json.loads(f'"{escape.group(0)}"'))


class Loader(Composer, CParser, SafeConstructor, Resolver):
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


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in Resolver.yaml_implicit_resolvers.items()
}
