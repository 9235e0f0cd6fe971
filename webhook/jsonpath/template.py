"""JSONPath templates as `kubectl get -o jsonpath=` takes them: the subset that Kubernetes documents.

https://kubernetes.io/docs/reference/kubectl/jsonpath/. A template is text with expressions in braces: a path, a quoted
text, or `{range PATH}` to `{end}`. As in kubectl a field that does not exist is empty, and several values have a space
between them. A field that is null counts as one that does not exist, because Kubernetes leaves such fields out.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from webhook.jsonpath.steps import (
    PathStep,
    child,
    descendants,
    exists,
    filtered,
    follow,
    item_at,
    sliced,
    text_of,
    union,
)

_EXPRESSION: Final = re.compile(r"""\{((?:[^{}'"]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*)\}""")
_QUOTED: Final = re.compile(r"""(?P<quote>['"])(?P<text>(?:[^\\]|\\.)*)(?P=quote)""")
_NAME: Final = r"(?:[^\s.\[\]{}()'\"=<>!,\\]|\\.)+"
_STEPS: Final = re.compile(
    rf"""(?P<deep>\.\.)(?P<deep_name>\*|{_NAME})
    |\.(?P<name>\*|{_NAME})
    |\[\?\((?P<filter>(?:[^'"]|'[^']*'|"[^"]*")*?)\)\]
    |\[(?P<inside>(?:[^\]'"]|'[^']*'|"[^"]*")*)\]
    |\.(?=\[|$)""",
    re.VERBOSE,
)
_COMPARISON: Final = re.compile(r"""(?P<left>.+?)\s*(?P<operator>==|!=|<=|>=|<|>)\s*(?P<right>.+)""")
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_AND_OR: Final = re.compile(r"""'[^']*'|"[^"]*"|(?P<word>\|\||&&)""")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}
_EXAMPLE: Final = "expected a template such as {.items[*].metadata.name}"


class _Range(NamedTuple):
    """The parts between `{range PATH}` and `{end}`."""

    steps: Sequence[PathStep]
    parts: list[_Part]


_Part = str | tuple[PathStep, ...] | _Range


class Template:
    """A template. Raises ValueError for a text that is none; the error says what was expected."""

    def __init__(self, text: str) -> None:
        if not text:
            raise ValueError(_EXAMPLE)
        self._parts: list[_Part] = []
        open_parts, place = [self._parts], 0
        for found in _EXPRESSION.finditer(text):
            _add_text(open_parts[-1], text[place : found.start()])
            _add_expression(open_parts, found[1].strip())
            place = found.end()
        _add_text(open_parts[-1], text[place:])
        if len(open_parts) > 1:
            raise ValueError("{range} without {end}: expected {range .items[*]}...{end}")

    def render(self, value: Any) -> str:
        """Return the text for a value, which is JSON.

        Raises:
            NoSuchIndex: a list of the value is shorter than the template says, or is no list.
        """
        return "".join(_rendered(self._parts, value))


def _add_text(parts: list[_Part], text: str) -> None:
    if "{" in text or "}" in text:
        raise ValueError(f"a brace or a quote without its other half in {text!r}; {_EXAMPLE}")
    parts.append(text)


def _add_expression(open_parts: list[list[_Part]], text: str) -> None:
    quoted = _QUOTED.fullmatch(text)
    word, _, rest = text.partition(" ")
    if quoted:
        open_parts[-1].append(_unescaped(quoted["text"]))
    elif word == "range":
        made = _Range(_path(rest.strip()), [])
        open_parts[-1].append(made)
        open_parts.append(made.parts)
    elif text == "end":
        if len(open_parts) == 1:
            raise ValueError("{end} without {range}: expected {range .items[*]}...{end}")
        open_parts.pop()
    else:
        open_parts[-1].append(_path(text))


def _path(text: str) -> tuple[PathStep, ...]:
    """The steps of a path. The root `$` and the current value `@` are the value that the path starts with."""
    rest, place, steps = text.removeprefix("$").removeprefix("@"), 0, []
    if not text:
        raise ValueError(f"an empty expression; {_EXAMPLE}")
    while place < len(rest):
        found = _STEPS.match(rest, place)
        if found is None or not found[0]:
            raise ValueError(f"{rest[place:]!r} is no step of a path; {_EXAMPLE}")
        steps.append(_step(found))
        place = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> PathStep:
    if found["deep"]:
        return partial(descendants, _unescaped(found["deep_name"]))
    if found["name"]:
        return partial(child, _unescaped(found["name"]))
    if found["filter"]:
        return partial(filtered, _condition(found["filter"].strip()))
    if found["inside"] is not None:
        return partial(union, [_subscript(part.strip()) for part in found["inside"].split(",")])
    return lambda value: iter([value])  # the dot of `.[0]`


def _subscript(text: str) -> PathStep:
    quoted, slices = _QUOTED.fullmatch(text), text.split(":")
    if quoted:
        return partial(child, _unescaped(quoted["text"]))
    if text == "*":
        return partial(child, "*")
    try:
        numbers = [int(number) if number.strip() else None for number in slices]
    except ValueError:
        numbers = []
    if len(numbers) == 1 and numbers[0] is not None:
        return partial(item_at, numbers[0])
    if len(numbers) not in (2, 3):
        raise ValueError(f"[{text}]: expected [NUMBER], [START:END], [*], ['NAME'] or [?(@.NAME==VALUE)]")
    return partial(sliced, slice(*numbers))


def _condition(text: str) -> Callable[[Any], bool]:
    joined = next(filter(None, (found["word"] for found in _AND_OR.finditer(text))), None)
    if joined:
        raise ValueError(f"{joined} in a filter: expected one comparison, because kubectl's templates have no {joined}")
    compared = _COMPARISON.fullmatch(text)
    if compared is None:
        steps = _path(text)
        return lambda value: exists(steps, value)
    left, right = (_operand(compared[side]) for side in ("left", "right"))
    compare = _OPERATORS[compared["operator"]]
    return lambda value: _holds(compare, left(value), right(value))


def _operand(text: str) -> Callable[[Any], Any]:
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        literal = _unescaped(quoted["text"])
    elif text.startswith("@"):
        steps = _path(text)
        return lambda value: next(follow(steps, value), None)
    else:
        try:
            literal = json.loads(text)
        except ValueError:
            raise ValueError(f"{text!r} in a filter: expected a quoted text, a number, true, false or @.NAME") from None
    return lambda _: literal


def _holds(compare: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    try:
        return compare(left, right)
    except TypeError:  # a text and a number have no order
        return False


def _rendered(parts: Sequence[_Part], value: Any) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, _Range):
            for inner in follow(part.steps, value):
                yield from _rendered(part.parts, inner)
        else:
            yield " ".join(map(text_of, follow(part, value)))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text)
