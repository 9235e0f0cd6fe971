"""The record of an admission: names of objects, the decision and its reason."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace
from support.drivers.serving import cluster
from support.objects import builders
from support.objects.records import RECORD

from webhook.core import admit
from webhook.core.admit import Answer
from webhook.core.opt_in import Policy
from webhook.objects.cluster import Cluster
from webhook.objects.documents import read_documents
from webhook.objects.files import read_objects
from webhook.telemetry.record import admission_record


@pytest.fixture(scope="module")
def view() -> Cluster:
    """The cluster of tests/support/drivers/serving.py."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster()})
    return Cluster(read_objects(read_documents(text, "cluster")), longhorn_namespace="longhorn-system")


def answer(view: Cluster, pod: builders.Object, **request: Any) -> Answer:
    """Return the answer for a pod."""
    answer = admit.admit(json.dumps(builders.review(pod, **request)).encode(), view, Policy())
    assert isinstance(answer, Answer)
    return answer


def test_a_placed_pod_is_recorded_with_its_names(view: Cluster) -> None:
    """The request, the decision, its reason, and its duration."""
    pod = builders.virt_launcher_pod(claims=["disk"])
    found = admission_record(answer(view, pod, uid="u-1", dryRun=True), 123)
    assert found == replace(
        RECORD,
        time=found.time,
        duration_us=123,
        pod="virt-launcher-db01-",
        nodes=("node-a",),
        operations=3,
        dry_run=True,
    )
    assert abs(datetime.now(UTC) - found.time) < timedelta(minutes=1)


LEFT: Final = {
    "a pod that did not ask": (builders.virt_launcher_pod(opt_in=None), {}, ("NotOptedIn", 0, "virt-launcher-db01-")),
    "a pod that has no claim": (builders.virt_launcher_pod(), {}, ("NoClaims", 2, "virt-launcher-db01-")),
    "an update": (builders.virt_launcher_pod(), {"operation": "UPDATE"}, ("NotACreate", 0, None)),
    "no metadata": ({"metadata": {}, "spec": {}}, {"namespace": None}, ("NotVirtLauncher", 0, None)),
}


@pytest.mark.parametrize(("pod", "asked", "told"), LEFT.values(), ids=LEFT.keys())
def test_a_pod_left_alone_is_recorded_too(
    view: Cluster, pod: builders.Object, asked: dict[str, Any], told: tuple[str, int, str | None]
) -> None:
    """Unchanged, with the reason, and no node."""
    found = admission_record(answer(view, pod, **asked), 1)
    assert (found.reason, found.operations, found.pod) == told
    assert (found.decision, found.nodes, found.dry_run) == ("unchanged", (), False)


def test_a_pod_of_another_owner_is_no_vmi(view: Cluster) -> None:
    """The VMI's name comes only from the owner of that kind."""
    pod = builders.virt_launcher_pod()
    pod["metadata"]["ownerReferences"][0]["kind"] = "ReplicaSet"
    assert admission_record(answer(view, pod), 1).vmi is None
