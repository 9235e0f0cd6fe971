from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from support.objects import builders

from webhook.core.api.node import Node
from webhook.core.scheduler.budget import Budget, OutOfSteps
from webhook.core.scheduler.state.node_labels import COLUMN_STEPS, NodeLabels


def node(name: str, labels: dict[str, str]) -> Node:
    """A node with no labels but these."""
    made = builders.node(name)
    made["metadata"]["labels"] = labels
    return convert(made, Node)


NODES = {f"n{number}": node(f"n{number}", {"zone": "ab"[number % 2], "host": f"h{number}"}) for number in range(250)}


def test_a_column_is_what_the_nodes_say() -> None:
    """Of one label the nodes that have it; of several every node, one value for all nodes that have the same."""
    nodes = {**NODES, "bare": node("bare", {})}
    labels = NodeLabels()
    assert labels.of("zone", nodes, Budget()) == {name: "ab"[int(name[1:]) % 2] for name in NODES}
    both = labels.combinations(("zone", "none"), nodes, Budget())
    assert both["n0"] is both["n2"]
    assert both["n0"] != both["n1"]
    assert len(set(both.values())) == 3
    assert both.keys() == nodes.keys()


def test_a_column_costs_nothing_once_it_is_there() -> None:
    """The first time it costs steps for each node, where steps are counted."""
    labels, budget = NodeLabels(), Budget()
    with pytest.raises(OutOfSteps):
        labels.of("zone", NODES, Budget(0))
    labels.of("zone", NODES, budget)
    assert len(NODES) <= budget.most - budget.left <= 20 * len(NODES)
    assert labels.of("zone", NODES, Budget(0))
    assert NodeLabels(charges=False).of("zone", NODES, Budget(0))


def test_a_second_admission_gets_further() -> None:
    """If there are too many nodes for one admission, each admission reads some of them."""
    labels = NodeLabels()
    for _ in range(3):
        with pytest.raises(OutOfSteps):
            labels.of("zone", NODES, Budget(len(NODES) * COLUMN_STEPS // 4))
    assert labels.of("zone", NODES, Budget(len(NODES) * COLUMN_STEPS // 3)).keys() == NODES.keys()


def test_only_the_last_columns_are_kept() -> None:
    """A column that was not read since sixteen others were read is built again."""
    labels = NodeLabels()
    labels.of("zone", NODES, Budget())
    for other in range(16):
        assert labels.of("zone", NODES, Budget(0)) if other < 8 else True
        labels.of(f"other-{other}", {}, Budget())
    assert labels.of("zone", NODES, Budget(0))
    for other in range(16):
        labels.of(f"another-{other}", {}, Budget())
    with pytest.raises(OutOfSteps):
        labels.of("zone", NODES, Budget(0))


@given(random=st.randoms(use_true_random=False))
def test_a_column_follows_its_nodes(random: Random) -> None:
    """Nodes come, change and go, while the column is read and afterwards. In the end it has the nodes' labels."""
    labels, nodes = NodeLabels(followed=["zone"]), dict[str, Node]()
    keys = ("host", "zone")
    for step in range(random.randrange(60)):
        name = f"n{random.randrange(8)}"
        if name in nodes and random.random() < 0.3:
            labels.drop(name)
            del nodes[name]
        else:
            own = {key: random.choice("ab") for key in keys if random.random() < 0.8}
            nodes[name] = node(name, own)
            labels.put(name, own)
        if random.random() < 0.3:
            budget = Budget(random.choice((0, 40, 1_000)))
            for asked in ("host", "zone"):
                _try(labels, asked, nodes, budget)
            _try(labels, keys, nodes, budget)
        assert step < 60
    own_labels = {name: each.metadata.labels or {} for name, each in nodes.items()}
    for key in keys:
        expected = {name: own[key] for name, own in own_labels.items() if key in own}
        assert labels.of(key, nodes, Budget()) == expected
    assert labels.of("zone", nodes, Budget(0)) is not None, "followed from the beginning"
    both = labels.combinations(keys, nodes, Budget())
    assert both == {name: tuple(map(own.get, keys)) for name, own in own_labels.items()}


def _try(labels: NodeLabels, asked: str | tuple[str, ...], nodes: dict[str, Node], budget: Budget) -> None:
    try:
        if isinstance(asked, str):
            labels.of(asked, nodes, budget)
        else:
            labels.combinations(asked, nodes, budget)
    except OutOfSteps:
        pass
