"""The text of an Explanation, as an operator reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.drivers.explaining import CLUSTER, a_pod, as_yaml, explained, run


def _nodes(count: int) -> str:
    return CLUSTER + "".join(
        f"---\n{{apiVersion: v1, kind: Node, metadata: {{name: extra-{i:02}}}}}\n" for i in range(count)
    )


def test_up_to_forty_nodes_are_all_listed() -> None:
    """The table has a row for each node if it fits on a screen."""
    out = run(as_yaml(a_pod("root")), cluster=_nodes(37)).out
    assert (
        "Nodes (40):\n  NODE      CANDIDATE  FEASIBLE  REASON\n  node-b    yes        yes       NodeFeasible\n" in out
    )
    assert "  extra-36  -          no        NodeNotReady: node extra-36 is not Ready\n" in out
    assert "others" not in out


def test_more_than_forty_nodes_are_counted_by_reason() -> None:
    """The candidates are listed, and the others are counted, the most frequent reason first."""
    out = run(as_yaml(a_pod("root")), cluster=_nodes(38)).out
    assert (
        "Nodes (41):\n"
        "  NODE    CANDIDATE  FEASIBLE  REASON\n"
        "  node-b  yes        yes       NodeFeasible\n"
        "  others, by reason:\n"
        "      38  NodeNotReady\n"
        "       1  NodeFeasible\n"
        "       1  NodeCordoned\n"
        "\n"
    ) in out
    assert len(explained(a_pod("root"), cluster=_nodes(38))["nodes"]) == 41


def test_without_a_candidate_more_than_forty_nodes_are_only_counted() -> None:
    """There is no table without rows."""
    out = run(as_yaml(a_pod("absent")), cluster=_nodes(38)).out
    assert "Nodes (41):\n  no candidate; by reason:\n      38  NodeNotReady\n" in out
    assert "CANDIDATE" not in out


def test_a_cluster_without_nodes_shows_none() -> None:
    """The section of the nodes is shown even without nodes."""
    assert "\nNodes:\n  none\n" in run(as_yaml(a_pod("absent")), cluster="").out


COLOR_ROWS = {
    "required": (a_pod("root"), "\x1b[32mOutcome:     required on node-b\x1b[0m"),
    "preferred": (a_pod("hint"), "\x1b[33mOutcome:       preferred on node-a\x1b[0m"),
    "an added line": (a_pod("root"), "  \x1b[32m+affinity:\x1b[0m\n"),
}


@pytest.mark.parametrize(("pod", "painted"), COLOR_ROWS.values(), ids=COLOR_ROWS)
def test_colors_mark_the_outcome_and_the_diff(pod: dict[str, Any], painted: str) -> None:
    """Colors are only in output that asked for them."""
    assert painted in run(as_yaml(pod), color=True).out
    assert "\x1b" not in run(as_yaml(pod)).out


def test_an_unchanged_pod_has_no_color() -> None:
    """The outcome `unchanged` has no color."""
    assert "\x1b" not in run(as_yaml(a_pod("root", opt_in=None)), color=True).out


def test_control_characters_are_shown_not_sent() -> None:
    """A name from a file can't drive the terminal."""
    pod = a_pod("\x1b[31mred\n")
    out = run(json.dumps(pod), color=True).out
    assert "\\x1b[31mred\\x0a" in out
    assert "\x1b[31mred" not in out
    pod["metadata"]["name"] = "\x9b31mred"
    assert run(json.dumps(pod)).out.startswith("Pod vms/\\x9b31mred (stdin:1)\n")
