"""What an API server answers: a body with warnings, an error in its words, and what kube-scheduler said of a pod."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

Sample = tuple[str, dict[str, str], float]
"""Of a metric: name, labels and value."""

_SAMPLE: Final = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL: Final = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')


class ApiError(Exception):
    """What the API server refused, in its words."""

    def __init__(self, method: str, path: str, status: int, body: bytes) -> None:
        try:
            told = json.loads(body)
            self.message, self.reason = str(told.get("message")), str(told.get("reason"))
        except ValueError:
            self.message, self.reason = body.decode(errors="replace"), ""
        self.status = status
        super().__init__(f"{method} {path}: {status} {self.reason}: {self.message}")


class Answer(NamedTuple):
    """A body, and the warnings that came with it (of webhooks, of admission)."""

    body: Any
    warnings: list[str]


def _unquoted(warning: str) -> str:
    """The text of a Warning header: `299 - "text"`, quotes and backslashes in it escaped."""
    return re.sub(r"\\(.)", r"\1", warning.split('"', 1)[1].removesuffix('"'))


def _condition(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    conditions = pod["status"].get("conditions") or []
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def is_judged(pod: Mapping[str, Any]) -> bool:
    """Whether the scheduler has bound the pod, or has said that it can't: an error of its own is neither."""
    return bool(pod["spec"].get("nodeName")) or _condition(pod).get("reason") == "Unschedulable"


def refusal(pod: Mapping[str, Any]) -> str | None:
    """Why it found no node, in its words; None where it bound the pod."""
    return None if pod["spec"].get("nodeName") else str(_condition(pod).get("message"))


def samples(text: str, prefix: str) -> list[Sample]:
    """The samples of the metrics whose names begin so."""
    found = filter(None, map(_SAMPLE.fullmatch, (line for line in text.splitlines() if line.startswith(prefix))))
    return [(each["name"], dict(_LABEL.findall(each["labels"] or "")), float(each["value"])) for each in found]


def summed(told: Iterable[Sample], name: str, /, **labels: str) -> float:
    """The sum of the samples of this metric that carry these labels; 0 where there is none."""
    return sum(value for each, labelled, value in told if each == name and labels.items() <= labelled.items())
