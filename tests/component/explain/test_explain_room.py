"""explain against an API server: the free resources of nodes, as the webhook counts them."""

from __future__ import annotations

from typing import Any

import pytest
from support.drivers.explaining import a_vm
from support.drivers.explaining_live import Explain, live
from support.fakes.static_api import StaticApi
from support.objects import builders_pods

PODS = "/api/v1/pods"
MACHINE = "/apis/kubevirt.io/v1/namespaces/vms/virtualmachines/db01"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"


def put(api: StaticApi, *pods: dict[str, Any]) -> None:
    """Add these pods to the cluster."""
    for pod in pods:
        meta = pod["metadata"]
        api.objects[f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"] = pod


def full(node: str) -> dict[str, Any]:
    """A pod that leaves too little of a node's 64 CPUs for a VM that requests one."""
    return builders_pods.pod("batch", node=node, namespace="jobs", requests={"cpu": "64"})


def asking(vm: dict[str, Any]) -> dict[str, Any]:
    """The VM, with a request of one CPU."""
    vm["spec"]["template"]["spec"]["domain"] = {"resources": {"requests": {"cpu": "1"}}}
    return vm


@pytest.fixture(autouse=True)
def _vm_with_requests(api: StaticApi) -> None:
    for path in [path for path in api.objects if "/kubevirt.io/" in path and path.endswith("/db")]:
        del api.objects[path]  # the disk is of one VM
    api.objects[MACHINE] = live(asking(a_vm("disk")), "db01")


def asked(api: StaticApi, collection: str) -> int:
    """The number of times that a collection was listed."""
    return sum(path.partition("?")[0] == collection for path in api.asked)


def test_pods_are_listed_once_for_all_that_is_asked(explain: Explain, api: StaticApi) -> None:
    """One list serves several objects; the API server leaves out finished pods."""
    explain("vm/db01 vm/db pod/virt-launcher-db-now")
    assert (asked(api, PODS), asked(api, CSI_NODES)) == (1, 1)
    (listed,) = [path for path in api.asked if path.startswith(f"{PODS}?")]
    assert "fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed" in listed


def test_pods_are_not_listed_without_an_opt_in(explain: Explain, api: StaticApi) -> None:
    """Free resources decide nothing for a pod without the annotation."""
    explain("pod/virt-launcher-out")
    assert asked(api, PODS) == 0
