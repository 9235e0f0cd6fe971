"""The objects that the install's kustomization renders to, and lookups in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from kustomizing import kustomize

Object = dict[str, Any]

ROOT: Final = Path(__file__).resolve().parent.parent
MANIFESTS: Final = ROOT / "manifests"
NAME: Final = "kubevirt-coschedule"


@cache
def installed() -> Sequence[Mapping[str, Any]]:
    """The objects of the install. One list for all tests: change a copy."""
    return tuple(kustomize(MANIFESTS))


def the(kind: str, objects: Iterable[Mapping[str, Any]] | None = None) -> Mapping[str, Any]:
    """The only object of its kind."""
    (found,) = (item for item in (installed() if objects is None else objects) if item["kind"] == kind)
    return found


def at(path: str, item: Any) -> Any:
    """The value at `a.b.0.c`, None where there is none."""
    for step in path.split("."):
        if isinstance(item, list):
            item = item[int(step)] if int(step) < len(item) else None
        elif isinstance(item, Mapping):
            item = item.get(step)
        else:
            return None
    return item


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector matches; as in apimachinery, NotIn matches a key that is absent."""
    has = {
        "In": lambda key, values: labels.get(key) in values,
        "NotIn": lambda key, values: labels.get(key) not in values,
        "Exists": lambda key, _: key in labels,
        "DoesNotExist": lambda key, _: key not in labels,
    }
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        has[term["operator"]](term["key"], term.get("values", ())) for term in selector.get("matchExpressions", ())
    )
