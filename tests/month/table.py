"""The month as a table: a row for each contestant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from month.account import LOCAL, PENDING, STRANDED
from month.plan import What

_HEADER: Final = (
    "Contestant",
    "Local",
    "Local, h",
    "Apart, h",
    "By cause, h",
    "Pending, h",
    "Stranded, h",
    "Share-manager pods a VM",
    "of them by drains",
    "Migrations",
    "Failed open",
)


def lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Of Markdown. The share of local hours is of those in which VMs that are opted in ran."""
    yield f"Seed {report['seed']}: {report['vms']} VMs on {report['nodes']} nodes, {report['days']:g} days"
    yield ""
    yield f"| {' | '.join(_HEADER)} |"
    yield "|---" * len(_HEADER) + "|"
    for name, played in report["contestants"].items():
        yield f"| {' | '.join(_row(name, played, report['vms']))} |"


def _row(name: str, played: Mapping[str, Any], vms: int) -> Iterator[str]:
    hours, pods = played["hours"], played["share-manager pods"]
    local, apart = hours.get(LOCAL, 0.0), hours.get("apart", 0.0)
    yield name
    yield f"{100 * local / (local + apart):.1f} %" if local + apart else "-"
    yield f"{local:,.0f}"
    yield f"{apart:,.0f}"
    yield ", ".join(f"{cause} {spent:,.0f}" for cause, spent in played["apart"].items()) or "-"
    yield f"{hours.get(PENDING, 0.0):,.1f}"
    yield f"{hours.get(STRANDED, 0.0):,.1f}"
    yield f"{sum(pods.values()) / vms:.2f}"
    yield f"{pods.get(What.DRAIN, 0) / vms:.2f}"
    yield ", ".join(f"{count} {told}" for told, count in played["migrations"].items()) or "-"
    yield f"{played['failed open']:g}"
