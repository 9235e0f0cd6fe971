"""What came of the month: the file, and the tables that are made of it.

A cell has a figure for each seed in the file's order, or one if they are equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from month.account import LOCAL, PENDING, STRANDED
from month.plan import What

FILE: Final = Path(__file__).with_name("results.json")
"""The month of the pages."""
TITLES: Final = {
    "none": "without the webhook",
    "required": "`--mode=required`",
    "preferred": "`--mode=preferred`",
    "reunite": "the default mode, and `reunite`",
}
_APART: Final = "apart"

Played = Mapping[str, Any]
"""What came of one month of one contestant."""


def written(report: Mapping[str, Any]) -> str:
    """The file: JSON with a line for each month."""
    head = {key: value for key, value in report.items() if key != "seeds"}
    lines = [json.dumps(head)[:-1] + ', "seeds": {']
    for number, (seed, months) in enumerate(report["seeds"].items(), 1):
        rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(played)}" for name, played in months.items())
        lines.append(f'"{seed}": {{\n{rows}\n}}{"," if number < len(report["seeds"]) else ""}')
    return "\n".join([*lines, "}}"]) + "\n"


def read() -> dict[str, Any]:
    """The month of the pages."""
    report: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return report


def table(report: Mapping[str, Any]) -> str:
    """The VM-hours of each contestant."""
    seeds = ", ".join(report["seeds"])
    header = (
        f"Seeds {seeds}",
        "Local",
        "Pending, h",
        "Stranded, h",
        "Share-manager pods a VM",
        "Of them in drains",
        "Migrations by people",
        "By drains",
        "By `reunite`",
        "Failed open",
    )
    return _table(
        header,
        (
            (
                title,
                _each(months, local_share, "{:.1f}", " %"),
                _each(months, lambda played: played["hours"].get(PENDING, 0), "{:.1f}"),
                _each(months, lambda played: played["hours"].get(STRANDED, 0), "{:.1f}"),
                _each(months, lambda played: sum(played["share-manager pods"].values()) / report["vms"], "{:.1f}"),
                _each(months, lambda played: played["share-manager pods"].get(What.DRAIN, 0) / report["vms"], "{:.2f}"),
                *(_each(months, lambda played, who=who: migrations(played, who), "{:d}") for who in WHO),
                _each(months, lambda played: played["failed open"], "{:g}"),
            )
            for title, months in _rows(report)
        ),
    )


WHO: Final = ("people", "drains", "reunite")


def causes(report: Mapping[str, Any]) -> str:
    """The VM-hours apart by what happened last, as the mean of the seeds."""
    rows = _rows(report)
    found = sorted({cause for _, months in rows for played in months for cause in played[_APART]})
    return _table(
        ("VM-hours apart since", *(title for title, _ in rows)),
        (
            (
                cause,
                *(
                    f"{_mean(months, lambda played, cause=cause: played[_APART].get(cause, 0)):,.0f}"
                    for _, months in rows
                ),
            )
            for cause in found
        ),
    )


def rolling(report: Mapping[str, Any]) -> str:
    """What a drain of all nodes takes."""
    return _table(
        (
            "One drain of each node",
            "Share-manager pods a VM",
            "Migrations by drains",
            "By `reunite`",
            "VMs together at the end",
        ),
        (
            (
                title,
                _each(drained, lambda each: each["share-manager pods"] / report["vms"], "{:.2f}"),
                _each(drained, lambda each: migrations(each, "drains"), "{:d}"),
                _each(drained, lambda each: migrations(each, "reunite"), "{:d}"),
                _each(drained, lambda each: each["local at the end"], "{:d}"),
            )
            for title, months in _rows(report)
            for drained in [[played["rolling drain"] for played in months]]
        ),
    )


def readme(report: Mapping[str, Any]) -> str:
    """The share of local VM-hours."""
    titles = {
        "without the webhook": ("none",),
        "with it, `--mode=required` and `--mode=preferred`": ("required", "preferred"),
        "and with `reunite`": ("reunite",),
    }
    seeds = [*report["seeds"].values()]
    rows = (
        (title, *(" and ".join(f"{local_share(months[name]):.1f}" for name in names) + " %" for months in seeds))
        for title, names in titles.items()
    )
    return _table(("", *(f"seed {seed}" for seed in report["seeds"])), rows)


def local_share(played: Played) -> float:
    """The share of local hours in those in which VMs that are opted in ran, in %."""
    hours = played["hours"]
    local = hours.get(LOCAL, 0.0)
    return 100 * local / ((local + hours.get(_APART, 0.0)) or 1)


def migrations(played: Played, who: str) -> int:
    """How many of them somebody has made."""
    return sum(count for told, count in played["migrations"].items() if told.startswith(who))


def _rows(report: Mapping[str, Any]) -> list[tuple[str, list[Played]]]:
    seeds = [*report["seeds"].values()]
    names = [name for name in TITLES if all(name in months for months in seeds)]
    return [(TITLES[name], [months[name] for months in seeds]) for name in names]


def _each(months: Sequence[Played], figure: Callable[[Played], float], form: str, unit: str = "") -> str:
    figures = [form.format(figure(played)) for played in months]
    return ", ".join(figures if len({*figures}) > 1 else figures[:1]) + unit


def _mean(months: Sequence[Played], figure: Callable[[Played], float]) -> float:
    return sum(map(figure, months)) / len(months)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(header)} |".replace("|  |", "| |"), "|---" + "|---:" * (len(header) - 1) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
