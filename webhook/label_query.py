r"""The label selector of `-l` as kubectl takes it: `app=db,tier!=test,zone in (a,b),!old`.

Upstream: k8s.io/apimachinery pkg/labels/selector.go (Parse). The operators `>` and `<` for numbers are not taken.
"""

from __future__ import annotations

import re
from typing import Final

from webhook.core.scheduler.label_selector import Requirement, Selector

_WORD: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_KEY: Final = rf"(?:{_WORD}/)?{_WORD}"
_PARTS: Final = re.compile(r",(?![^(]*\))")  # a comma outside of parentheses
_FORMS: Final = (
    re.compile(rf"(?P<key>{_KEY})\s*(?P<operator>==?|!=)\s*(?P<value>{_WORD}|)"),
    re.compile(rf"(?P<key>{_KEY})\s+(?P<operator>in|notin)\s*\(\s*(?P<values>{_WORD}(?:\s*,\s*{_WORD})*)\s*\)"),
    re.compile(rf"(?P<operator>!|)\s*(?P<key>{_KEY})"),
)
_NEGATIVE: Final = ("!=", "notin", "!")


def parse_query(text: str) -> Selector:
    """Return the selector.

    Raises:
        ValueError: says what was expected.
    """
    return Selector(tuple(_requirement(part.strip()) for part in _PARTS.split(text)))


def _requirement(part: str) -> Requirement:
    found = next(filter(None, (form.fullmatch(part) for form in _FORMS)), None)
    if found is None:
        raise ValueError("expected a label selector such as app=db, tier!=test, 'zone in (a,b)' or !old")
    groups = found.groupdict()
    listed = groups.get("values")
    values = (groups["value"],) if "value" in groups else tuple(re.split(r"\s*,\s*", listed)) if listed else ()
    return Requirement(groups["key"], values, wanted=groups["operator"] not in _NEGATIVE)
