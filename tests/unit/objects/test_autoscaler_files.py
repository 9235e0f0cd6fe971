"""Whether files show a cluster-autoscaler."""

from __future__ import annotations

from typing import Any

import pytest
from support.fakes.views import cluster
from support.objects.builders import Object, cluster_autoscaler_status, node


def bundle_of(*lists: Object) -> Object:
    """The record of a bundle with these lists."""
    record = {"cluster": "c", "at": "2026-01-01T00:00:00Z", "namespace": "vms", "longhornNamespace": "longhorn-system"}
    return {
        "apiVersion": "kubevirt-scheduler/v1",
        "kind": "Bundle",
        "metadata": {"name": "bundle"},
        "lists": lists,
        **record,
    }


LISTED = {"apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps"}
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", "namespace": "vms"}}
AUTOSCALERS: dict[str, tuple[list[Object], bool]] = {
    "nothing": ([], False),
    "another ConfigMap": ([OTHER], False),
    "cluster-autoscaler": ([cluster_autoscaler_status()], True),
    "one in each of two namespaces": ([cluster_autoscaler_status(), cluster_autoscaler_status("scaling")], True),
    "a node of Karpenter": ([node("n1", labels={"karpenter.sh/nodepool": "default"})], True),
    "a bundle without one": ([bundle_of(LISTED)], False),
    "a bundle that could not list it": ([bundle_of({**LISTED, "problem": "403 Forbidden"})], True),
    "the bundle of an older version": ([bundle_of()], True),
}


@pytest.mark.parametrize(("objects", "seen"), AUTOSCALERS.values(), ids=AUTOSCALERS)
def test_whether_files_show_an_autoscaler(objects: list[Object], seen: bool) -> None:  # noqa: FBT001 - a row's
    """If that is not known, it counts as seen."""
    assert cluster(*objects).has_autoscaler() is seen


@pytest.mark.parametrize("metadata", [{"name": "app"}, {}, None, "app"])
def test_other_config_maps_are_ignored_whatever_is_in_them(metadata: Any) -> None:
    """Files of users have many. Two of one name, or one without metadata, are not errors."""
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": 5}
    assert cluster(other, other).objects.ignored == {"v1 ConfigMap": 2}
