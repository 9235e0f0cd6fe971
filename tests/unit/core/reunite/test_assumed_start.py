"""An assumed start counts on its node until the VM has a new pod, and no longer than KubeVirt's longest wait."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec import convert
from support.fakes.views import cluster
from support.objects import builders
from support.objects.builders_pods import asking

from webhook.core.api.pod import Pod
from webhook.core.observe.vm_status import VMStatus, vm_status_of
from webhook.core.opt_in import Mode, Policy
from webhook.core.reunite.assumed_start import AssumedStart, SnapshotWithStarts, still_assumed
from webhook.core.scheduler.state.pod_requests import Usage
from webhook.core.scheduler.state.snapshot import NoSnapshot

START: Final = AssumedStart(
    namespace="vms", vmi="db01", pod="virt-launcher-db01", node="n2", usage=Usage((("cpu", 2000),)), until=300.0
)
POD: Final = builders.vm_pod("db01", pinned_to=["n1"])


def row(name: str, vm: str = "db01") -> VMStatus:
    """The row of a VM in this pod."""
    found = vm_status_of([convert(builders.vm_pod(name, vm=vm), Pod)], cluster(), Policy(mode=Mode.REQUIRED))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("rows", "now", "stands"),
    [
        pytest.param([], 0.0, True, id="no pod yet"),
        pytest.param([row("db01")], 0.0, True, id="the watch still shows the old pod"),
        pytest.param([row("db01-2")], 0.0, False, id="a new pod"),
        pytest.param([row("web", vm="web")], 0.0, True, id="a pod of another VM"),
        pytest.param([], 299.9, True, id="just before its end"),
        pytest.param([], 300.0, False, id="its end"),
    ],
)
def test_a_start_is_assumed_until_there_is_a_new_pod(rows: list[VMStatus], now: float, *, stands: bool) -> None:
    """The new pod counts by itself."""
    assert still_assumed([START], rows, now) == ([START] if stands else [])


def test_a_snapshot_counts_assumed_starts_and_leaves_out_the_pod_that_waits() -> None:
    """All other answers are those of the snapshot below."""
    other = builders.vm_pod("other", node="n3")
    whole = cluster(POD, other, *(builders.node(name) for name in ("n1", "n2", "n3"))).snapshot()
    assert not isinstance(whole, NoSnapshot)
    counted = SnapshotWithStarts(whole, [START, START], without=convert(POD, Pod))
    assert [whole.node_info(name).requested.pods for name in ("n1", "n2", "n3")] == [1, 0, 1]
    assert [counted.node_info(name).requested.pods for name in ("n1", "n2", "n3")] == [0, 2, 1]
    assert counted.node_info("n2").requested.amounts["cpu"] == 4000
    assert whole.node_info("n2").requested.pods == 0
    assert counted.hostnames is whole.hostnames
    assert counted.existing_terms is whole.existing_terms
    assert counted.headroom is whole.headroom
    assert counted.replicas == whole.replicas
    assert counted.shortlisted(assumed=False) == whole.shortlisted(assumed=False)


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param({"cpu": "65"}, id="larger than the whole node"),
        pytest.param({}, id="the watch has not shown the pod"),
    ],
)
def test_a_pod_that_no_node_counts_is_not_taken_away(requests: dict[str, str]) -> None:
    """The node's other pods stay counted."""
    waits = asking(POD, {"cpu": "1", **requests}, host_port=80)
    counted = [waits] if requests else []
    whole = cluster(*counted, builders.vm_pod("other", node="n1"), builders.node("n1")).snapshot()
    assert not isinstance(whole, NoSnapshot)
    counted = SnapshotWithStarts(whole, [], without=convert(waits, Pod))
    assert counted.node_info("n1").requested.pods == whole.node_info("n1").requested.pods == 1
