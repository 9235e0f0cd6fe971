from __future__ import annotations

import pytest
from support.objects.workloads import Object, asks, box, resize, told

from webhook.core.scheduler.state.pod_requests import is_over

SIDECAR = {"initContainers": [box("s", always=True, cpu="1")]}
INIT = {"initContainers": [box("i", cpu="1")]}
OWN = {"containers": [box()], "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}


@pytest.mark.parametrize(
    ("spec", "status", "cpu"),
    [
        pytest.param({"containers": [box(cpu="1")]}, {}, 1000, id="no status of containers"),
        pytest.param({"containers": [box(cpu="1")]}, {"containerStatuses": [{"name": "c"}]}, 1000, id="tells nothing"),
        pytest.param(
            {"containers": [box(cpu="1")]}, {"containerStatuses": [told(cpu="2")]}, 2000, id="not yet smaller"
        ),
        pytest.param({"containers": [box(cpu="3")]}, {"containerStatuses": [told(cpu="2")]}, 3000, id="soon larger"),
        pytest.param(
            {"containers": [box(cpu="1")]},
            {"containerStatuses": [told(cpu="2", allocated={"cpu": "4"})]},
            4000,
            id="promised more",
        ),
        pytest.param({"containers": [box(cpu="1")]}, {"containerStatuses": [told("d", cpu="2")]}, 1000, id="another's"),
        pytest.param(
            {"containers": [box(cpu="1")]},
            {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "4"}}]},
            4000,
            id="allocated, and no report of what it has",
        ),
        pytest.param(
            {"containers": [box(cpu="1")]},
            {"containerStatuses": [{"name": "c", "resources": {}}], "conditions": resize("Infeasible")},
            0,
            id="refused, and the container has none",
        ),
        pytest.param(
            {"containers": [box(cpu="9")]},
            {
                "containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "4"}}],
                "conditions": resize("Infeasible"),
            },
            9000,
            id="refused, allocated, and no report",
        ),
        pytest.param(
            {"containers": [box(cpu="9")]},
            {"containerStatuses": [told(cpu="2", allocated={"cpu": "1"})], "conditions": resize("Infeasible")},
            2000,
            id="a resize that the node refuses",
        ),
        pytest.param(
            {"containers": [box(cpu="9")]},
            {"containerStatuses": [told(cpu="2")], "conditions": resize("Deferred")},
            9000,
            id="a resize that waits",
        ),
        pytest.param(
            {"containers": [box(cpu="9")]}, {"conditions": resize("Infeasible")}, 9000, id="refused, and nothing told"
        ),
        pytest.param(SIDECAR, {"initContainerStatuses": [told("s", cpu="5")]}, 5000, id="a sidecar is resized"),
        pytest.param(INIT, {"initContainerStatuses": [told("i", cpu="5")]}, 5000, id="an init container has more"),
        pytest.param(
            INIT,
            {"initContainerStatuses": [told("i", cpu="500m")], "conditions": resize("Infeasible")},
            1000,
            id="an init container's request always counts",
        ),
        pytest.param(OWN, {"resources": {"requests": {"cpu": "3"}}}, 3000, id="the pod's own"),
        pytest.param(OWN, {"resources": {}, "allocatedResources": {"cpu": "4"}}, 4000, id="the pod's own, promised"),
        pytest.param(OWN, {"allocatedResources": {"cpu": "4"}}, 2000, id="the pod's own, and nothing told"),
        pytest.param(
            OWN,
            {"resources": {"requests": {"cpu": "1"}}, "conditions": resize("Infeasible")},
            1000,
            id="the pod's own, refused",
        ),
        pytest.param(
            OWN, {"resources": {"requests": {}}, "conditions": resize("Infeasible")}, 0, id="refused, and has none"
        ),
        pytest.param(
            {"containers": [box(cpu="1")]},
            {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}},
            3000,
            id="the whole pod has more",
        ),
        pytest.param(
            {**OWN, "resources": {"requests": {"memory": "1Gi"}}, "containers": [box(cpu="1")]},
            {"resources": {"requests": {"cpu": "3"}}},
            3000,
            id="the pod's own, and more of what it does not ask for",
        ),
        pytest.param(
            {"containers": [box(cpu="1")]},
            {"nodeAllocatableResourceClaimStatuses": [{"resources": {"cpu": "2"}}, {"resources": {"cpu": "4"}}]},
            7000,
            id="by claims of devices",
        ),
    ],
)
def test_a_pod_on_a_node_takes_what_it_has_is_promised_or_asks_for(spec: Object, status: Object, cpu: int) -> None:
    """The largest of these amounts, except a request that the node has refused."""
    assert asks(spec, status).get("cpu", 0) == cpu


@pytest.mark.parametrize(
    ("phase", "over"),
    [("Running", False), ("Pending", False), ("Unknown", False), (None, False), ("Succeeded", True), ("Failed", True)],
)
def test_a_pod_that_is_over_counts_nowhere(phase: str | None, over: bool) -> None:  # noqa: FBT001 - a column
    """What is over runs no more."""
    assert is_over(phase) is over
