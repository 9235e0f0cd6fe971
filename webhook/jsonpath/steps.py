"""The steps of a JSONPath: each leads from one value to others. Values are JSON.

As in kubectl an index must be within its list: client-go util/jsonpath/jsonpath.go (evalArray).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from webhook.component_base.errors import UserError

PathStep = Callable[[Any], Iterator[Any]]
"""One step of a path: the values to which the step leads from one value."""

_SHOWN_CHARS: Final = 40


class NoSuchIndex(UserError):
    """A template has an index that the value does not have."""


def child(name: str, value: Any) -> Iterator[Any]:
    """The field of that name; all values for `*`."""
    if name == "*":
        yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    elif isinstance(value, dict) and value.get(name) is not None:
        yield value[name]


def item_at(index: int, value: Any) -> Iterator[Any]:
    """The item at that index of a list."""
    yield from sliced(slice(index, index + 1 or None), value)


def sliced(chosen: slice, value: Any) -> Iterator[Any]:
    """The items of that slice of a list."""
    if value is None:
        return
    if not isinstance(value, list):
        raise NoSuchIndex(f"jsonpath: {text_of(value)[:_SHOWN_CHARS]} is no list; expected [NUMBER] after a list only")
    first, last = ((each + len(value) if each < 0 else each) for each in (chosen.start or 0, _end(chosen, value)))
    if first == last:
        return
    outside = first if not 0 <= first < len(value) else last - 1
    if not 0 <= outside < len(value) or first > last:
        raise NoSuchIndex(f"jsonpath: index {outside} of a list of {len(value)}; expected an index that the list has")
    yield from value[first : last : chosen.step]


def _end(chosen: slice, value: Sequence[Any]) -> int:
    return len(value) if chosen.stop is None else chosen.stop


def union(steps: Sequence[PathStep], value: Any) -> Iterator[Any]:
    """The values of each of the steps."""
    for step in steps:
        yield from step(value)


def filtered(condition: Callable[[Any], bool], value: Any) -> Iterator[Any]:
    """The items of a list for which the condition is true."""
    yield from (each for each in value if condition(each)) if isinstance(value, list) else ()


def descendants(name: str, value: Any) -> Iterator[Any]:
    """The fields of that name in the value and in all values within it."""
    yield from child(name, value)
    for inner in child("*", value):
        yield from descendants(name, inner)


def follow(steps: Sequence[PathStep], value: Any) -> Iterator[Any]:
    """The values to which the steps lead, one after the other."""
    if not steps:
        yield value
        return
    for inner in steps[0](value):
        yield from follow(steps[1:], inner)


def exists(steps: Sequence[PathStep], value: Any) -> bool:
    """Whether the steps lead to any value."""
    with suppress(NoSuchIndex):
        return next(follow(steps, value), None) is not None
    return False


def text_of(value: Any) -> str:
    """The value as a template prints it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
