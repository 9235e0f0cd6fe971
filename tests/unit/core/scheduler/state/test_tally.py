from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.scheduler.state.node_counts import Tally, as_dict, names, with_one_less, with_one_more


@given(steps=st.lists(st.tuples(st.booleans(), st.sampled_from("abcd")), max_size=60))
def test_it_counts(steps: list[tuple[bool, str]]) -> None:
    """Whatever was added and taken away, it has what a Counter has, and is None where that has nothing."""
    tally: Tally | None = None
    plain: Counter[str] = Counter()
    for more, node in steps:
        if more:
            tally, plain = with_one_more(tally, node), plain + Counter([node])
        elif plain[node]:
            assert tally is not None
            tally, plain = with_one_less(tally, node), plain - Counter([node])
        assert ({} if tally is None else as_dict(tally)) == plain
        assert set(names(tally)) == plain.keys()


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
    tally: Tally | None = None
    for node in range(number):
        tally = with_one_more(tally, f"n{node}")
    assert tally is not None
    assert type(tally) is kind
    assert as_dict(tally) == {f"n{node}": 1 for node in range(number)}
