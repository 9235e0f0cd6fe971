"""YAML of the corpus: strict to read, merged, repeated and spelled out, whatever it is about."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import yaml

Object = dict[str, Any]

_AFFINITY_WORDS: Final[Mapping[str, str]] = {
    "required": "requiredDuringSchedulingIgnoredDuringExecution",
    "preferred": "preferredDuringSchedulingIgnoredDuringExecution",
}


class BadRow(Exception):
    """What is wrong with a row, without its place."""


class Text(yaml.CSafeLoader):
    """Safe YAML. A key that occurs twice, or is not a string (an unquoted `on`), is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        """Return the mapping after a check of its keys."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge") or key.value in seen:
                raise BadRow(f"line {key.start_mark.line + 1}: key {key.value}: no string, or here twice")
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def only(mapping: Any, known: frozenset[str], where: str) -> Object:
    """Return the mapping, which must have only known keys."""
    if not isinstance(mapping, dict):
        raise BadRow(f"{where}: got {mapping!r}, expected a mapping")
    if unknown := sorted(set(mapping) - known):
        raise BadRow(f"{where}: unknown key {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    return mapping


def names(value: Any, where: str) -> list[str]:
    """Return the value, which must be a list of strings."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadRow(f"{where}: got {value!r}, expected a list of names")
    return value


def deep_merge(base: Any, over: Any) -> Any:
    """Return `over` merged into `base`: mappings key by key; any other value (null, too) replaces the old one."""
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return copy.deepcopy(over)
    merged = {key: deep_merge(value, over[key]) if key in over else value for key, value in base.items()}
    return copy.deepcopy(merged | {key: value for key, value in over.items() if key not in base})


def copied(value: Any) -> Any:
    """Return the value, with each list item `{from: 1, to: 3, each: x#}` replaced by the items x1, x2, x3."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    items = []
    for item in value:
        if isinstance(item, dict) and item.keys() == {"from", "to", "each"}:
            items += [_numbered(copied(item["each"]), str(number)) for number in range(item["from"], item["to"] + 1)]
        else:
            items.append(copied(item))
    return items


def _numbered(value: Any, number: str) -> Any:
    if isinstance(value, dict):
        return {key: _numbered(inner, number) for key, inner in value.items()}
    if isinstance(value, list):
        return [_numbered(inner, number) for inner in value]
    return value.replace("#", number) if isinstance(value, str) else value


def spelled(value: Any) -> Any:
    """The value with an affinity's short words spelled out, of which Kubernetes' own are long.

    `required` and `preferred` stand for the fields that begin so; a list in nodeAffinity's `required` for its terms.
    """
    if isinstance(value, list):
        return [spelled(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    full = {_AFFINITY_WORDS.get(key, key): spelled(inner) for key, inner in value.items()}
    node_affinity = full.get("nodeAffinity") or {}
    if isinstance(node_affinity.get(_AFFINITY_WORDS["required"]), list):
        node_affinity[_AFFINITY_WORDS["required"]] = {"nodeSelectorTerms": node_affinity[_AFFINITY_WORDS["required"]]}
    return full
