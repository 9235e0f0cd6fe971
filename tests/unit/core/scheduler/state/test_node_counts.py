from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.scheduler.state.node_counts import NodeCounts, as_dict, names, with_one_less, with_one_more


@given(steps=st.lists(st.tuples(st.booleans(), st.sampled_from("abcd")), max_size=60))
def test_it_counts(steps: list[tuple[bool, str]]) -> None:
    """Whatever was added and taken away, it has what a Counter has, and is None where that has nothing."""
    node_counts: NodeCounts | None = None
    plain: Counter[str] = Counter()
    for more, node in steps:
        if more:
            node_counts, plain = with_one_more(node_counts, node), plain + Counter([node])
        elif plain[node]:
            assert node_counts is not None
            node_counts, plain = with_one_less(node_counts, node), plain - Counter([node])
        assert ({} if node_counts is None else as_dict(node_counts)) == plain
        assert set(names(node_counts)) == plain.keys()


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        pytest.param(1, str, id="one"),
        pytest.param(8, tuple, id="a few"),
        pytest.param(9, dict, id="many"),
    ],
)
def test_it_is_small_while_it_can_be(number: int, kind: type[object]) -> None:
    """One node is its name, a few are a tuple: a dict for each would be most of what the index weighs."""
    node_counts: NodeCounts | None = None
    for node in range(number):
        node_counts = with_one_more(node_counts, f"n{node}")
    assert node_counts is not None
    assert type(node_counts) is kind
    assert as_dict(node_counts) == {f"n{node}": 1 for node in range(number)}
