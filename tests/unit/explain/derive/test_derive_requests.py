"""derive_virt_launcher: the resource requests of the pod of a VM."""

from __future__ import annotations

from typing import Any

import pytest
from support.objects.deriving import a_vm, derived

ROWS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing told": ({}, {"cpu": "100m"}),
    "sockets, cores and threads": ({"cpu": {"sockets": 2, "cores": 4, "threads": 2}}, {"cpu": "1600m"}),
    "CPUs of its own": ({"cpu": {"cores": 4, "dedicatedCpuPlacement": True}}, {"cpu": "4000m"}),
    "a request of CPU": ({"cpu": {"cores": 4}, "resources": {"requests": {"cpu": "2"}}}, {"cpu": "2"}),
    "the guest's memory": ({"memory": {"guest": "8Gi"}}, {"cpu": "100m", "memory": "8Gi"}),
    "a request of memory": (
        {"memory": {"guest": "8Gi"}, "resources": {"requests": {"memory": "4Gi"}}},
        {"cpu": "100m", "memory": "4Gi"},
    ),
    "a limit of memory": ({"resources": {"limits": {"memory": "4Gi"}}}, {"cpu": "100m", "memory": "4Gi"}),
    "huge pages": (
        {"memory": {"guest": "8Gi", "hugepages": {"pageSize": "1Gi"}}},
        {"cpu": "100m", "hugepages-1Gi": "8Gi"},
    ),
    "another resource": (
        {"resources": {"requests": {"example.com/gpu": "1"}}},
        {"cpu": "100m", "example.com/gpu": "1"},
    ),
    "odd values": (
        {"memory": {"guest": [1]}, "resources": {"requests": {"memory": {}}}},
        {"cpu": "100m"},
    ),
}


@pytest.mark.parametrize(("domain", "asked"), ROWS.values(), ids=ROWS)
def test_what_the_domain_asks_for(domain: dict[str, Any], asked: dict[str, Any]) -> None:
    """The requests that KubeVirt derives from the domain, and the scratch space of every virt-launcher pod."""
    (container,) = derived(a_vm({"domain": domain})).pod["spec"]["containers"]
    assert container["resources"]["requests"] == {"ephemeral-storage": "50M", **asked}


@pytest.mark.parametrize("spec", [{"domain": None}, {"domain": {"resources": None, "cpu": None, "memory": None}}])
def test_a_domain_without_these_asks_for_the_least(spec: dict[str, Any]) -> None:
    """Absent and null fields are equal."""
    (container,) = derived(a_vm(spec)).pod["spec"]["containers"]
    assert container["resources"]["requests"] == {"ephemeral-storage": "50M", "cpu": "100m"}
