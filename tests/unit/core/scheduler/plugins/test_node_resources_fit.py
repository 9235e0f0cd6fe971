from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.api.container import UNREADABLE
from webhook.core.reasons import Reason
from webhook.core.scheduler.plugins.node_resources_fit import amount_text, why_insufficient
from webhook.core.scheduler.state.node_info import UNLISTED, NodeInfo, NodeRequests, allocatable
from webhook.core.scheduler.state.pod_requests import Usage

KVM: Final = "devices.kubevirt.io/kvm"
HAS: Final = {"pods": 3, "cpu": 4000, "memory": 2**30, KVM: 2}


def asking(**amounts: int) -> Usage:
    """A pod's usage; `kvm` is a device."""
    named = {KVM if name == "kvm" else name: amount for name, amount in amounts.items()}
    return Usage(tuple(sorted(named.items())))


def loaded(*pods: Usage) -> NodeRequests:
    """What these pods request together."""
    load = NodeRequests()
    for pod in pods:
        load.add(pod)
    return load


EMPTY: Final = loaded()
TWO: Final = loaded(asking(cpu=1500, memory=2**29), asking(cpu=1500, kvm=1))


@pytest.mark.parametrize(
    ("asked", "has", "load", "missing"),
    [
        pytest.param(asking(), HAS, EMPTY, None, id="asks for nothing"),
        pytest.param(asking(cpu=1000, memory=2**29, kvm=1), HAS, TWO, None, id="just what is left"),
        pytest.param(asking(cpu=1001), HAS, TWO, "cpu", id="a thousandth of a CPU too much"),
        pytest.param(asking(memory=2**29 + 1), HAS, TWO, "memory", id="a byte too much"),
        pytest.param(asking(kvm=2), HAS, TWO, KVM, id="a device too much"),
        pytest.param(asking(cpu=4001, kvm=3), HAS, TWO, "cpu", id="more than one thing: the first by name"),
        pytest.param(asking(**{"hugepages-2Mi": 1}), HAS, EMPTY, "hugepages-2Mi", id="what the node has not"),
        pytest.param(asking(), HAS, loaded(asking(), asking(), asking()), "pods", id="no place for a pod"),
        pytest.param(asking(), {}, EMPTY, "pods", id="a node of which nothing is known"),
        pytest.param(asking(cpu=1), {"pods": 1}, EMPTY, "cpu", id="a node that tells the number of pods alone"),
        pytest.param(asking(memory=1), HAS, loaded(asking(cpu=9000)), None, id="overfull of what it does not ask for"),
        pytest.param(asking(cpu=1), HAS, loaded(asking(cpu=UNREADABLE)), "cpu", id="beside an unreadable amount"),
        pytest.param(asking(memory=1), HAS, loaded(asking(cpu=UNREADABLE)), None, id="unreadable, and not asked for"),
        pytest.param(asking(cpu=UNREADABLE), HAS, EMPTY, "cpu", id="an unreadable amount"),
    ],
)
def test_a_pod_fits_where_everything_it_asks_for_is_left(
    asked: Usage, has: Mapping[str, int], load: NodeRequests, missing: str | None
) -> None:
    """Each resource by itself; what a pod does not request never rejects it, except the number of pods."""
    why = why_insufficient(asked, NodeInfo(UNLISTED, has, load), 1)
    assert (why and (why.reason, why.names["resource"])) == (missing and (Reason.NO_ROOM, missing))


@pytest.mark.parametrize(
    ("replicas", "cpu", "on_the_way", "expected"),
    [
        pytest.param(1, 1000, EMPTY, None, id="one replica"),
        pytest.param(3, 1000, EMPTY, None, id="room for the share of each of three"),
        pytest.param(4, 1000, EMPTY, (Reason.REPLICA_SHARE_FULL, "cpu"), id="for three of four"),
        pytest.param(2, 3001, EMPTY, (Reason.NO_ROOM, "cpu"), id="for none"),
        pytest.param(2, 1000, asking(cpu=1000), None, id="the pod on the way is in the other share, too"),
        pytest.param(3, 500, asking(cpu=1000), (Reason.REPLICA_SHARE_FULL, "cpu"), id="and in that of each other"),
        pytest.param(2, 1, asking(memory=9), None, id="it asks for something else"),
        pytest.param(9, 1, EMPTY, (Reason.REPLICA_SHARE_FULL, "pods"), id="places of pods"),
    ],
)
def test_there_is_room_for_the_share_of_each_replica(
    replicas: int, cpu: int, on_the_way: Usage | NodeRequests, expected: tuple[Reason, str] | None
) -> None:
    """A share is the pod and what is on the way. That there is no room at all comes first."""
    coming = loaded(on_the_way) if isinstance(on_the_way, Usage) else on_the_way
    node = NodeInfo(UNLISTED, {"pods": 9, "cpu": 4000}, loaded(asking(cpu=1000)), on_the_way=coming)
    why = why_insufficient(asking(cpu=cpu), node, replicas)
    assert (why and (why.reason, why.names["resource"])) == expected


def test_a_refusal_names_what_is_missing() -> None:
    """For a sentence about it."""
    why = why_insufficient(asking(cpu=500), NodeInfo(UNLISTED, HAS, loaded(asking(cpu=3800))), 1)
    assert why
    assert {name: why.names[name] for name in ("resource", "asked", "used", "allocatable")} == {
        "resource": "cpu",
        "asked": "500m",
        "used": "3800m",
        "allocatable": "4000m",
    }


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
    why = why_insufficient(asked, node, replicas)
    expected = Reason.NO_ROOM if not enough(asked, there, has) else Reason.REPLICA_SHARE_FULL
    assert (why and why.reason) is (None if enough(asked, [*there, *others], has) else expected)


@given(data=st.data(), pods=st.lists(USAGES, max_size=8))
def test_a_load_is_that_of_the_pods_that_are_left(data: st.DataObject, pods: list[Usage]) -> None:
    """Whichever went, in whatever order: nothing is left behind, and nothing goes with them."""
    going = data.draw(st.lists(st.sampled_from(range(len(pods))), unique=True) if pods else st.just([]))
    load = loaded(*pods)
    for index in going:
        load.add(pods[index], -1)
    fresh = loaded(*data.draw(st.permutations([pod for index, pod in enumerate(pods) if index not in going])))
    for resource in ("pods", *RESOURCES):
        assert load.of(resource) == fresh.of(resource)


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
