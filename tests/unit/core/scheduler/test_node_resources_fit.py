from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.api.container import UNREADABLE
from webhook.core.placement.replica_share import amount_text, why_scarce
from webhook.core.reasons import Reason
from webhook.core.scheduler.cache import UNLISTED, NodeInfo, NodeRequests, allocatable
from webhook.core.scheduler.pod_requests import Usage


def asking(**amounts: int) -> Usage:
    """A pod's usage."""
    return Usage(tuple(sorted(amounts.items())))


def loaded(*pods: Usage) -> NodeRequests:
    """What these pods request together."""
    load = NodeRequests()
    for pod in pods:
        load.add(pod)
    return load


RESOURCES: Final = ("cpu", "memory", "example.com/gpu")
USAGES: Final = st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 10)).map(lambda each: asking(**each))
NODES: Final = st.fixed_dictionaries(
    {"pods": st.integers(0, 20)}, optional={name: st.integers(0, 60) for name in RESOURCES}
)


def enough(asked: Usage, pods: Iterable[Usage], has: Mapping[str, int]) -> bool:
    """Whether a node has enough for these pods of what one of them asks for."""
    together: Counter[str] = Counter()
    for pod in pods:
        together.update({"pods": 1, **dict(pod.requests)})
    return all(together[name] <= has.get(name, 0) for name in ("pods", *dict(asked.requests)))


@given(
    bound=st.lists(USAGES, max_size=3),
    coming=st.lists(USAGES, max_size=2),
    asked=USAGES,
    has=NODES,
    replicas=st.integers(1, 4),
)
def test_a_pod_fits_if_and_only_if_all_shares_together_do(
    bound: list[Usage], coming: list[Usage], asked: Usage, has: dict[str, int], replicas: int
) -> None:
    """As far as it asks: every other replica may have given away as much as this one, and this one does not know."""
    node = NodeInfo(UNLISTED, has, loaded(*bound, *coming), on_the_way=loaded(*coming))
    there = [*bound, *coming, asked]
    others = [*coming, asked] * (replicas - 1)
    why = why_scarce(asked, node, replicas)
    expected = Reason.NO_ROOM if not enough(asked, there, has) else Reason.REPLICA_SHARE_FULL
    assert (why and why.reason) is (None if enough(asked, [*there, *others], has) else expected)


@pytest.mark.parametrize(
    ("quantities", "has"),
    [
        (None, {}),
        ({}, {}),
        (
            {"cpu": "3920m", "memory": "16391244Ki", "pods": "110", "ephemeral-storage": "94789307944"},
            {"cpu": 3920, "memory": 16391244 * 1024, "pods": 110, "ephemeral-storage": 94789307944},
        ),
        (
            {"devices.kubevirt.io/kvm": "1k", "hugepages-1Gi": "2Gi"},
            {"devices.kubevirt.io/kvm": 1000, "hugepages-1Gi": 2**31},
        ),
        ({"cpu": "100u", "memory": "0.5"}, {"cpu": 1, "memory": 1}),
        ({"storage": "1Ti", "gadgets": "5", "hugepages-2Mi": "0"}, {}),
        ({"cpu": "lots", "memory": "-1", "pods": None, "example.com/x": "1e30"}, {}),
        ({"cpu": "9223372036854775807", "memory": "9223372036854775807"}, {"memory": 2**63 - 1}),
    ],
    ids=["absent", "empty", "a node", "devices", "fractions", "not counted", "unreadable", "beyond int64"],
)
def test_a_node_has_what_it_tells_readably(quantities: dict[str, Any] | None, has: dict[str, int]) -> None:
    """Rounded up as kube-scheduler does. The rest is left out: a pod that requests it is rejected."""
    assert allocatable(quantities) == has


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("memory", 8549 * 2**20, "8549Mi"),
        ("memory", 2**20 + 1, "1048577"),
        ("memory", 0, "0"),
        ("hugepages-1Gi", 2**31, "2048Mi"),
        ("ephemeral-storage", 50_000_000, "50000000"),
        ("example.com/x", 2**20, "1048576"),
        ("cpu", UNREADABLE, "an amount that can't be read"),
        ("memory", 2**63, "an amount that can't be read"),
    ],
)
def test_an_amount_is_written_as_kubernetes_writes_it(resource: str, amount: int, text: str) -> None:
    """Bytes in mebibytes if that is exact."""
    assert amount_text(resource, amount) == text
