"""explain against an API server: which lists it asks for."""

from __future__ import annotations

from support.drivers.explaining_live import Explain
from support.fakes.static_api import StaticApi

PODS = "/api/v1/pods"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"


def asked(api: StaticApi, collection: str) -> list[str]:
    """The requests for all objects of a collection."""
    return [path for path in api.asked if path.startswith(f"{collection}?") and "labelSelector" not in path]


def test_pods_are_listed_once_for_all_that_is_asked(explain: Explain, api: StaticApi) -> None:
    """One list serves several objects; the API server leaves out finished pods."""
    explain("vm/db pod/virt-launcher-db-now pod/virt-launcher-db-now")
    assert (len(asked(api, PODS)), len(asked(api, CSI_NODES))) == (1, 1)
    (listed,) = asked(api, PODS)
    assert "fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed" in listed


def test_pods_are_not_listed_for_a_vm(explain: Explain, api: StaticApi) -> None:
    """Free resources say nothing about a pod that does not exist yet."""
    explain("vm/db vmi/db")
    assert asked(api, PODS) == []


def test_pods_are_not_listed_without_an_opt_in(explain: Explain, api: StaticApi) -> None:
    """Free resources decide nothing for a pod without the annotation."""
    explain("pod/virt-launcher-out")
    assert asked(api, PODS) == []
