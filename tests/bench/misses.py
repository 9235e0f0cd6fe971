"""Why a share-manager pod landed elsewhere, by the scheduler's own scores. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from landing import Landed, Scores
from uneven import ColdStart


class Miss(NamedTuple):
    """One that was tried again. `behind`: by plugin, what the VM's node had more than the one that won, or less."""

    why: str
    behind: Mapping[str, int]


def misses(tried: Iterable[ColdStart], landed: Landed, scores: Mapping[str, Scores]) -> Iterator[Miss]:
    """The result of each cold start, and why."""
    for start in tried:
        yield _miss(start, landed, scores.get(start.pod, {}))


def _miss(start: ColdStart, landed: Landed, scores: Scores) -> Miss:
    if start.pod in landed.pending:
        return Miss(f"Pending: {landed.pending[start.pod]}", {})
    won = landed.nodes[start.pod]
    if won == start.node.name:
        return Miss("on target when tried again", {})
    if won not in scores:  # where it is the only feasible one, it is not scored
        return Miss("no other node was feasible", {})
    if start.node.name not in scores:
        return Miss(f"not among the {len(scores)} nodes that were scored", {})
    behind = {plugin: scores[start.node.name][plugin] - score for plugin, score in scores[won].items()}
    return Miss(f"outweighed by {min(behind, key=behind.__getitem__)}", {k: v for k, v in behind.items() if v})


def told(tried: Iterable[Miss]) -> Iterator[str]:
    """A line for each why: how many, and from where to where the plugins' scores were apart."""
    groups: dict[str, list[Miss]] = defaultdict(list)
    for miss in tried:
        groups[miss.why].append(miss)
    for why, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        plugins = sorted({plugin for miss in group for plugin in miss.behind})
        ranges = ", ".join(f"{plugin} {_range([miss.behind.get(plugin, 0) for miss in group])}" for plugin in plugins)
        yield f"{len(group)} {why}{ranges and f' ({ranges})'}"


def _range(values: list[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:+}" if low == high else f"{low:+} to {high:+}"
