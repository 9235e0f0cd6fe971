from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from webhook.core.api.quantity import UNREADABLE
from webhook.core.scheduler.plugins.node_ports import find_taken
from webhook.core.scheduler.plugins.node_resources_fit import (
    InsufficientResource,
    amount_text,
    insufficient_resources,
)
from webhook.core.scheduler.state.node_info import UNLISTED, NodeInfo, NodeRequests, allocatable
from webhook.core.scheduler.state.pod_requests import ANY_ADDRESS, HostPort, Usage

KVM = "devices.kubevirt.io/kvm"
HAS = {"pods": 3, "cpu": 4000, "memory": 2**30, KVM: 2}
SSH, ELSEWHERE = HostPort("TCP", 22, ANY_ADDRESS), HostPort("TCP", 22, "10.0.0.1")


def asking(*ports: HostPort, **amounts: int) -> Usage:
    """A pod's usage; `kvm` is a device."""
    named = {KVM if name == "kvm" else name: amount for name, amount in amounts.items()}
    return Usage(tuple(sorted(named.items())), ports)


def loaded(*pods: Usage) -> NodeRequests:
    """A node with these pods."""
    load = NodeRequests()
    for pod in pods:
        load.add(pod)
    return load


EMPTY = loaded()
TWO = loaded(asking(cpu=1500, memory=2**29), asking(cpu=1500, kvm=1))


@pytest.mark.parametrize(
    ("asked", "has", "load", "missing"),
    [
        pytest.param(asking(), HAS, EMPTY, [], id="asks for nothing"),
        pytest.param(asking(cpu=1000, memory=2**29, kvm=1), HAS, TWO, [], id="just what is left"),
        pytest.param(asking(cpu=1001), HAS, TWO, ["cpu"], id="a thousandth of a CPU too much"),
        pytest.param(asking(memory=2**29 + 1), HAS, TWO, ["memory"], id="a byte too much"),
        pytest.param(asking(kvm=2), HAS, TWO, [KVM], id="a device too much"),
        pytest.param(asking(cpu=4001, kvm=3), HAS, TWO, ["cpu", KVM], id="more than one thing"),
        pytest.param(asking(**{"hugepages-2Mi": 1}), HAS, EMPTY, ["hugepages-2Mi"], id="what the node has not"),
        pytest.param(asking(), HAS, loaded(asking(), asking(), asking()), ["pods"], id="no place for a pod"),
        pytest.param(asking(), {}, EMPTY, ["pods"], id="a node of which nothing is known"),
        pytest.param(asking(cpu=1), {"pods": 1}, EMPTY, ["cpu"], id="a node that tells the number of pods alone"),
        pytest.param(asking(memory=1), HAS, loaded(asking(cpu=9000)), [], id="overfull of what it does not ask for"),
        pytest.param(asking(cpu=1), HAS, loaded(asking(cpu=UNREADABLE)), ["cpu"], id="beside an unreadable amount"),
        pytest.param(asking(memory=1), HAS, loaded(asking(cpu=UNREADABLE)), [], id="unreadable, and not asked for"),
        pytest.param(asking(cpu=UNREADABLE), HAS, EMPTY, ["cpu"], id="an unreadable amount"),
    ],
)
def test_a_pod_fits_where_everything_it_asks_for_is_left(
    asked: Usage, has: Mapping[str, int], load: NodeRequests, missing: list[str]
) -> None:
    """Each resource by itself; what a pod does not request never rejects it, except the number of pods."""
    found = insufficient_resources(asked, NodeInfo(UNLISTED, has, load))
    assert [each.resource for each in found] == missing
    assert find_taken(asked, load) is None


@pytest.mark.parametrize(
    ("margin", "missing"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({"cpu": 1000}, [], id="all that would be left"),
        pytest.param({"cpu": 1001}, ["cpu"], id="more than would be left"),
        pytest.param({"memory": 2**40}, [], id="of what is not asked for"),
        pytest.param({"pods": 1}, ["pods"], id="of places"),
    ],
)
def test_a_margin_stays_free_of_the_pods_that_ask(margin: Mapping[str, int], missing: list[str]) -> None:
    """It is taken off what the node has."""
    node = NodeInfo(UNLISTED, {"pods": 2, "cpu": 3000}, loaded(asking(cpu=1000)))
    found = insufficient_resources(asking(cpu=1000), node, margin)
    assert [each.resource for each in found] == missing


@pytest.mark.parametrize(
    ("wanted", "taken", "clashes"),
    [
        pytest.param(SSH, SSH, True, id="the same"),
        pytest.param(SSH, ELSEWHERE, True, id="every address, and one is taken"),
        pytest.param(ELSEWHERE, SSH, True, id="one address, and every one is taken"),
        pytest.param(ELSEWHERE, HostPort("TCP", 22, "10.0.0.2"), False, id="another address"),
        pytest.param(HostPort("TCP", 22, "::"), ELSEWHERE, False, id="an address that the scheduler takes for one"),
        pytest.param(HostPort("UDP", 22, ANY_ADDRESS), SSH, False, id="another protocol"),
        pytest.param(HostPort("TCP", 23, ANY_ADDRESS), SSH, False, id="another port"),
    ],
)
def test_a_host_port_is_had_once(wanted: HostPort, taken: HostPort, clashes: bool) -> None:  # noqa: FBT001 - a column
    """By address, and 0.0.0.0 is all of them."""
    assert find_taken(asking(wanted), loaded(asking(taken))) == (wanted if clashes else None)
    assert not list(insufficient_resources(asking(wanted), NodeInfo(UNLISTED, HAS, loaded(asking(taken)))))


def test_a_pod_does_not_stand_in_its_own_way() -> None:
    """Two containers of it with one port are the API server's matter."""
    assert find_taken(asking(SSH, SSH), EMPTY) is None


def test_what_pods_took_is_free_once_they_are_gone() -> None:
    """A port that two pods have on one node is taken until both are gone."""
    pod = asking(SSH, cpu=4000, memory=5)
    load = loaded(asking(cpu=500))
    load.add(pod)
    load.add(pod)
    load.add(pod, -1)
    found = list(insufficient_resources(pod, NodeInfo(UNLISTED, HAS, load)))
    assert found == [InsufficientResource("cpu", 4000, 4500, 4000)]
    assert find_taken(pod, load) == SSH
    load.add(pod, -1)
    assert (load.pods, load.ports) == (1, {})
    more = asking(SSH, cpu=3500)
    assert not list(insufficient_resources(more, NodeInfo(UNLISTED, HAS, load)))
    assert find_taken(more, load) is None


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


def test_a_refusal_names_what_is_missing() -> None:
    """For a sentence about it."""
    found = InsufficientResource("cpu", 500, 3800, 4000)
    assert found.names() == {"resource": "cpu", "asked": "500m", "used": "3800m", "allocatable": "4000m"}
