from __future__ import annotations

import pytest
from support.objects.workloads import GIB, Object, asks, box

from webhook.core.api.container import UNREADABLE, units
from webhook.core.scheduler.pod_requests import is_counted


@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        pytest.param({}, {}, id="nothing at all"),
        pytest.param({"containers": [box(memory="100m"), box(memory="100m")]}, {"memory": 1}, id="rounded up once"),
        pytest.param({"containers": [box(cpu="100u"), box(cpu="100u")]}, {"cpu": 2}, id="but each to thousandths"),
        pytest.param({"containers": [box(limits={"cpu": "2"})]}, {"cpu": 2000}, id="limits stand for requests"),
        pytest.param({"containers": [box(cpu="1", limits={"cpu": "2"})]}, {"cpu": 1000}, id="where there are none"),
        pytest.param({"containers": [box(cpu="0", limits={"cpu": "2"})]}, {}, id="and zero is one"),
        pytest.param(
            {
                "containers": [
                    box(**{"devices.kubevirt.io/kvm": "1", "ephemeral-storage": "50M", "hugepages-1Gi": "2Gi"})
                ]
            },
            {"devices.kubevirt.io/kvm": 1, "ephemeral-storage": 50 * 10**6, "hugepages-1Gi": 2 * GIB},
            id="resources of every kind",
        ),
        pytest.param(
            {"containers": [box(cpu="1", storage="5Gi", pods="3", gadgets="2", **{"requests.example.com/x": "1"})]},
            {"cpu": 1000},
            id="what the scheduler does not count",
        ),
        pytest.param(
            {"containers": [box(cpu="much", memory="1Gi"), box(cpu="1", memory="1Gi")]},
            {"cpu": UNREADABLE + 1000, "memory": 2 * GIB},
            id="unreadable cpu",
        ),
        pytest.param(
            {"containers": [box(memory="-1")]}, {"memory": units(UNREADABLE)}, id="less than nothing is unreadable"
        ),
    ],
)
def test_a_pod_asks_for_what_its_containers_need_together(spec: Object, requests: dict[str, int]) -> None:
    """Milli-CPU, and whole units of all else."""
    assert asks(spec) == requests


@pytest.mark.parametrize(
    ("resource", "counted"),
    [
        *[(name, True) for name in ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu")],
        *[(name, True) for name in ("attachable-volumes-csi-x", "kubernetes.io/batch-cpu", "requests.kubernetes.io/x")],
        *[(name, False) for name in ("pods", "storage", "gadgets", "requests.example.com/gpu", "hugepages", "")],
    ],
)
def test_a_resource_counts_if_the_scheduler_counts_it(resource: str, counted: bool) -> None:  # noqa: FBT001 - a column
    """Others may stand in a node's or a pod's list, and never refuse anybody."""
    assert is_counted(resource) is counted
