"""What the schemas of CustomResourceDefinitions find wrong in objects."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from support.control_plane.rendering import Object


def custom_schema_errors(crds: Iterable[Path], objects: Iterable[Object], spoil: Callable[[Any], None]) -> list[str]:
    """Return what the schemas find wrong in the objects, after `spoil` has changed the spec of each object."""
    schemas = {}
    for file in crds:
        spec = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)["spec"]
        for version in spec["versions"]:
            schema = _strict(version["schema"]["openAPIV3Schema"])
            schemas[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = jsonschema.Draft7Validator(schema)
    wrong = []
    for item in objects:
        checked = copy.deepcopy(dict(item))
        spoil(checked["spec"])
        errors = schemas[item["apiVersion"], item["kind"]].iter_errors(checked)
        wrong += [error.message for error in errors]
    return wrong


def _strict(schema: Any) -> Any:
    """Return a schema that rejects fields which it does not know, as an API server does for `kubectl apply`."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    # Go's regular expressions may set a flag after the beginning, Python's may not.
    closed = {key: _strict(value) for key, value in schema.items() if (key, "(?i)" in str(value)) != ("pattern", True)}
    if isinstance(closed.get("properties"), dict) and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed
