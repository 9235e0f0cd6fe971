"""The table as a picture: p50 by the round trip that the relay adds, beside that of a client on the server's node.

Plain SVG. The colors follow the reader's choice of a light or a dark page (prefers-color-scheme).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Final, NamedTuple

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _GAP = 820, 400, 56, 84, 56, 64
_PANEL: Final = (_WIDTH - _LEFT - _GAP - 16) / 2
_CHART: Final = _HEIGHT - _TOP - _BOTTOM
_STYLE: Final = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328; } .small { font-size: 11px; }
  .line { fill: none; stroke-width: 2; } .same { stroke-dasharray: 5 4; } .grid { stroke: #8c959f; stroke-width: 0.3; }
  .any { stroke: #8c959f; } .read { stroke: #0969da; } .write { stroke: #bf8700; } .fsync { stroke: #cf222e; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .read { stroke: #58a6ff; } .write { stroke: #d29922; } .fsync { stroke: #f85149; }
  }
"""


class Panel(NamedTuple):
    """One depth: for each operation the p50 on the server's node, and by added round trip."""

    title: str
    local: Mapping[str, float]
    remote: Mapping[str, Sequence[tuple[int, float]]]

    @property
    def highest(self) -> float:
        """The highest p50 of the panel."""
        return max([*self.local.values(), *(p50 for points in self.remote.values() for _, p50 in points)])


def svg(panels: Sequence[Panel]) -> str:
    """Return the picture: the panels side by side, on one scale."""
    highest = max(panel.highest for panel in panels)
    step = next(each for each in (50, 100, 200, 500, 1000, 2000, 5000) if each * 6 >= highest)
    top = ceil(highest / step) * step
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        "<title>p50 of NFS requests of 4 KiB, on the share-manager's node and over a network</title>",
        f"<style>{_STYLE}</style>",
        f'<text x="{_LEFT}" y="18">p50 of one request of 4 KiB, microseconds</text>',
        *_legend(),
    ]
    for index, panel in enumerate(panels):
        parts += _panel(panel, _LEFT + index * (_PANEL + _GAP), top, step)
    return "\n".join([*parts, "</svg>", ""])


def _legend() -> Iterable[str]:
    for index, name in enumerate(("read", "write", "fsync")):
        x = _LEFT + 70 * index
        yield f'<line class="line {name}" x1="{x}" y1="38" x2="{x + 20}" y2="38"/>'
        yield f'<text class="small" x="{x + 26}" y="42">{name}</text>'
    for x, kind, title in ((300, "", "over the network"), (450, "same", "on the share-manager's node")):
        yield f'<line class="line any {kind}" x1="{x}" y1="38" x2="{x + 24}" y2="38"/>'
        yield f'<text class="small" x="{x + 30}" y="42">{title}</text>'


def _panel(panel: Panel, left: float, top: int, step: int) -> Iterable[str]:
    def height(p50: float) -> float:
        return _TOP + _CHART * (1 - p50 / top)

    furthest = max(added for points in panel.remote.values() for added, _ in points)
    yield f'<text x="{left:.1f}" y="{_TOP - 12}">{panel.title}</text>'
    for value in range(0, top + 1, step):
        y = height(value)
        yield f'<line class="grid" x1="{left:.1f}" y1="{y:.1f}" x2="{left + _PANEL:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="small" x="{left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{value}</text>'
    for added, _ in next(iter(panel.remote.values())):
        x = left + _PANEL * added / furthest
        yield f'<text class="small" x="{x:.1f}" y="{_TOP + _CHART + 18}" text-anchor="middle">{added}</text>'
    for name, points in panel.remote.items():
        y = height(panel.local[name])
        yield f'<line class="line same {name}" x1="{left:.1f}" y1="{y:.1f}" x2="{left + _PANEL:.1f}" y2="{y:.1f}"/>'
        line = " ".join(f"{left + _PANEL * added / furthest:.1f},{height(p50):.1f}" for added, p50 in points)
        yield f'<polyline class="line {name}" points="{line}"/>'
    yield (
        f'<text class="small" x="{left + _PANEL / 2:.1f}" y="{_HEIGHT - 16}" text-anchor="middle">'
        "round trip that the network adds, microseconds</text>"
    )
