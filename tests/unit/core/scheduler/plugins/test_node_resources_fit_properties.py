from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from webhook.core.scheduler.plugins.node_ports import find_taken
from webhook.core.scheduler.plugins.node_resources_fit import insufficient_resources
from webhook.core.scheduler.state.node_info import UNLISTED, NodeInfo, NodeRequests
from webhook.core.scheduler.state.pod_requests import ANY_ADDRESS, HostPort, Usage

RESOURCES = ("cpu", "memory", "example.com/gpu")
AMOUNTS = st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 10))
PORTS = st.builds(
    HostPort, st.sampled_from(["TCP", "UDP"]), st.integers(1, 2), st.sampled_from([ANY_ADDRESS, "10.0.0.1", "10.0.0.2"])
)
USAGES = st.builds(
    lambda amounts, ports: Usage(tuple(sorted(amounts.items())), tuple(ports)), AMOUNTS, st.lists(PORTS, max_size=2)
)
NODES = st.fixed_dictionaries({"pods": st.integers(0, 6)}, optional={name: st.integers(0, 30) for name in RESOURCES})
MARGINS = st.dictionaries(st.sampled_from(["pods", *RESOURCES]), st.integers(0, 5))


def fits(asked: Usage, has: dict[str, int], pods: list[Usage], margin: dict[str, int] | None = None) -> bool:
    """Whether neither plugin rejects a node with these pods."""
    node = NodeInfo(UNLISTED, has, load_of(pods))
    return not list(insufficient_resources(asked, node, margin or {})) and find_taken(asked, node.requested) is None


def load_of(pods: list[Usage]) -> NodeRequests:
    """The load of a node with these pods."""
    load = NodeRequests()
    for pod in pods:
        load.add(pod)
    return load


@given(pods=st.lists(USAGES, max_size=5), asked=USAGES, has=NODES, margin=MARGINS)
def test_a_pod_fits_if_and_only_if_all_pods_together_do(
    pods: list[Usage], asked: Usage, has: dict[str, int], margin: dict[str, int]
) -> None:
    """As far as it asks; and no host port that it asks for is another's."""
    together: Counter[str] = Counter({"pods": len(pods) + 1})
    for pod in (*pods, asked):
        together.update(dict(pod.requests))
    concerned = {"pods", *dict(asked.requests)}
    enough = all(together[name] + margin.get(name, 0) <= has.get(name, 0) for name in concerned)
    taken = {(port.protocol, port.port, port.address) for pod in pods for port in pod.ports}
    free = not any(
        (protocol, number) == (port.protocol, port.port) and len({address, port.address, ANY_ADDRESS}) < 3
        for port in asked.ports
        for protocol, number, address in taken
    )
    assert fits(asked, has, pods, margin) is (enough and free)


@given(data=st.data(), pods=st.lists(USAGES, max_size=8))
def test_a_load_is_that_of_the_pods_that_are_left(data: st.DataObject, pods: list[Usage]) -> None:
    """Whichever went, in whatever order: nothing is left behind, and nothing goes with them."""
    going = data.draw(st.lists(st.sampled_from(range(len(pods))), unique=True) if pods else st.just([]))
    load, fresh = NodeRequests(), NodeRequests()
    for pod in pods:
        load.add(pod)
    for index in going:
        load.add(pods[index], -1)
    for index in data.draw(st.permutations([index for index in range(len(pods)) if index not in going])):
        fresh.add(pods[index])
    assert (load.pods, load.ports) == (fresh.pods, fresh.ports)
    assert {name: amount for name, amount in load.amounts.items() if amount} == fresh.amounts


@given(pods=st.lists(USAGES, max_size=4), asked=USAGES, has=NODES, more=USAGES)
def test_one_pod_more_never_makes_room(pods: list[Usage], asked: Usage, has: dict[str, int], more: Usage) -> None:
    """Nor does it help to ask for more."""
    if not fits(asked, has, pods):
        assert not fits(asked, has, [*pods, more])
        grown = tuple((name, amount + 1) for name, amount in asked.requests)
        assert not fits(Usage(grown, asked.ports), has, pods)
