"""The table as a picture: one bar a rule, its VM-hours by what they count as. Plain SVG, equal for equal results.

The colors follow the reader's choice of a light or a dark page (prefers-color-scheme).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from simulation.account import LOCAL
from simulation.table import Result, share

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW, _BAR = 820, 250, 70, 64, 34, 20
_CHART: Final = _WIDTH - _LEFT - _RIGHT
_PARTS: Final = (
    (LOCAL, "local", "local"),
    ("live migration", "since a live migration", "live"),
    ("drain", "since a drain", "drain"),
    ("start", "since a start or restart", "start"),
    ("node loss", "since a node loss", "loss"),
)
_STYLE: Final = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .local { fill: #2da44e; } .live { fill: #0969da; } .drain { fill: #bf8700; }
  .start { fill: #8c959f; } .loss { fill: #cf222e; } .axis { stroke: #8c959f; stroke-width: 1; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .local { fill: #3fb950; } .live { fill: #58a6ff; } .drain { fill: #d29922; }
    .start { fill: #6e7681; } .loss { fill: #f85149; }
  }
"""


def svg(results: Sequence[Result]) -> str:
    """Return the picture of the whole month."""
    height = _TOP + _ROW * len(results) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        "<title>VM-hours of a month of 80 VMs on 10 nodes, by rule</title>",
        f"<style>{_STYLE}</style>",
        f'<text x="{_LEFT}" y="18">VM-hours on the node of all share-managers, and apart by cause</text>',
        *_legend(),
    ]
    for index, each in enumerate(results):
        parts += _bar(each, _TOP + _ROW * index)
    bottom = _TOP + _ROW * len(results) + 4
    for percent in range(0, 101, 25):
        x = _LEFT + _CHART * percent / 100
        parts.append(f'<line class="axis" x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 5}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{percent} %</text>')
    return "\n".join([*parts, "</svg>", ""])


def _legend() -> Iterable[str]:
    x = 40
    for _, title, name in _PARTS:
        yield f'<rect class="{name}" x="{x}" y="32" width="11" height="11"/>'
        yield f'<text x="{x + 15}" y="42" style="font-size: 11px">{escape(title)}</text>'
        x += 32 + 6 * len(title)


def _bar(result: Result, top: int) -> Iterable[str]:
    middle = top + _BAR * 0.75
    yield f'<text x="{_LEFT - 10}" y="{middle:.1f}" text-anchor="end">{escape(result.title)}</text>'
    x = float(_LEFT)
    for part, _, name in _PARTS:
        width = _CHART * share(result.whole, part) / 100
        if width >= 0.05:
            yield f'<rect class="{name}" x="{x:.1f}" y="{top}" width="{width:.1f}" height="{_BAR}"/>'
            x += width
    yield f'<text x="{_LEFT + _CHART + 8}" y="{middle:.1f}">{result.local_whole:.1f} %</text>'
