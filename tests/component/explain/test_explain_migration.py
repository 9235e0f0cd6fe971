"""explain for the target pod of a live migration: the decision that the webhook makes, if the API server calls it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from support.drivers.explaining import explained
from support.drivers.explaining_live import Explain
from support.fakes.static_api import StaticApi
from support.objects import builders, short

from webhook.core.admit import Entry

pytestmark = pytest.mark.usefixtures("no_environment")
CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
STATE: Final = {
    "nodes": ["node-a", "node-b", "node-c"],
    "volumes": {"disk": {"servedFrom": "node-a"}},
    "vms": {"running": {"vm": "db01", "uid": builders.OWNER_UID, "node": "node-b"}},
}


def configuration(*entries: Entry) -> dict[str, Any]:
    """The webhook configuration with these entries."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "kubevirt-coschedule"},
        "webhooks": [{"clientConfig": {"service": {"path": entry.path}}} for entry in entries],
    }


def target(**parts: Any) -> dict[str, Any]:
    """The target pod in the cluster, on a node by now."""
    pod = builders.migration_target_pod(source="node-b", claims=["disk"], namespace="vms", **parts)
    del pod["metadata"]["generateName"]
    pod["metadata"]["name"] = "target"
    pod["spec"]["nodeName"] = "node-c"
    return {**pod, "status": {"phase": "Running"}}


@pytest.fixture
def api() -> Iterator[StaticApi]:
    """A VM that leaves node-b, and whose share-manager is on node-a; the component homecoming is applied."""
    groups = ("kubevirt.io", "longhorn.io", "admissionregistration.k8s.io")
    objects = [*short.cluster(STATE), target(), configuration(*Entry)]
    with StaticApi(objects, installed=groups) as server:
        yield server


def test_a_target_is_explained_by_the_entry_of_targets(explain: Explain) -> None:
    """The source pod is found, and its resources do not count as free: it runs on while the target starts."""
    ran = explain("pod/target")
    assert (ran.code, ran.err) == (0, "")
    found = ran.found
    assert (found["entry"], found["decision"], found["reason"]) == ("migration-target", "preferred", "MigrationPrefers")
    assert (found["preferred"], found["required"], found["shortlist"]) == ([{"node": "node-a", "weight": 100}], [], [])
    assert [chain["claim"] for chain in found["claims"]] == ["disk"]
    assert len(found["notes"]) == 1
    text = explain("pod/target", "text").out
    assert "Mode:" in text
    assert "Not required:  MigrationPrefers: " in text


def test_a_vm_that_somebody_sent_to_a_node_is_explained(api: StaticApi, explain: Explain) -> None:
    """By the node selector of the source pod, which explain reads as the webhook does."""
    path = "/api/v1/namespaces/vms/pods/virt-launcher-running"
    api.objects[path]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "node-b"}
    ran = explain("pod/target")
    assert (ran.code, ran.found["decision"], ran.found["reason"]) == (1, "unchanged", "NodeChosen")


def test_without_the_component_a_target_stays_unchanged(api: StaticApi, explain: Explain) -> None:
    """The API server does not call the webhook. A note names what would change that."""
    api.objects[f"{CONFIGURATIONS}/kubevirt-coschedule"] = configuration(Entry.VIRT_LAUNCHER, Entry.SHARE_MANAGER)
    ran = explain("pod/target")
    assert (ran.code, ran.found["entry"], ran.found["reason"]) == (1, "virt-launcher", "MigrationTarget")
    assert "manifests/components/homecoming adds it" in ran.found["notes"][-1]


def test_a_configuration_that_can_t_be_read_is_noted(api: StaticApi, explain: Explain) -> None:
    """Then the target is explained as if the component were not applied."""
    api.refuse(CONFIGURATIONS, 403, "you may not")
    ran = explain("pod/target")
    assert (ran.code, ran.found["reason"]) == (1, "MigrationTarget")
    assert "is not known (" in ran.found["notes"][-1]
    assert "you may not" in ran.found["notes"][-1]


def test_files_do_not_tell_whether_the_component_is_applied() -> None:
    """These manifests have no webhook configuration."""
    found = explained(target())
    assert found["reason"] == "MigrationTarget"
    assert "is not known (cluster.yaml: no MutatingWebhookConfiguration is described" in found["notes"][-1]
