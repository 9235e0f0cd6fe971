"""Which pods the API server asks about, and by which entry: counted in the log of a server that logs every call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_api import Api, Object
from support.drivers.serving import Serving
from support.objects import builders
from support.scenarios.admitting import FAIL_OPEN, Counted, admission_lines

EVALUATION_ERRORS: Final = "apiserver_admission_match_condition_evaluation_errors_total"
_SAFE: Final[Object] = {  # what the own namespace's pod security asks for
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def launcher(namespace: str = builders.NAMESPACE, **described: Any) -> Object:
    """A VM start pod."""
    return builders.virt_launcher_pod(namespace=namespace, **described)


def bare(labels: Object | None, annotations: Object | None) -> Object:
    """A pod with just these labels and annotations: None for none at all."""
    pod = launcher()
    pod["metadata"] |= {"labels": labels, "annotations": annotations}
    return pod


def safe(pod: Object) -> Object:
    """The pod, as pod security's level `restricted` takes it."""
    for container in pod["spec"]["containers"]:
        container["securityContext"] = _SAFE
    return pod


OPTED_IN: Final = {builders.OPT_IN: "true"}
ASKED: Final = {
    "opted in": launcher(),
    "unreadable value": launcher(opt_in=""),
    "provisions a disk": launcher(annotations={"kubevirt.io/ephemeral-provisioning": "true"}),
    "receives a migration": launcher(annotations={"kubevirt.io/create-migration-target": "true"}),
    "a namespace of no VMs": launcher("default"),
    "longhorn's namespace": launcher(builders.LONGHORN_NAMESPACE),
}
NOT_ASKED: Final = {
    "no annotation of ours": launcher(opt_in=None),
    "opted out": launcher(opt_in="false"),
    "no annotations": bare({"kubevirt.io": "virt-launcher"}, None),
    "no labels": bare(None, OPTED_IN),
    "migration target": launcher(labels={"kubevirt.io/migrationJobUID": "6d1f"}),
    "migration target without a job": launcher(labels={"kubevirt.io/migrationJobUID": ""}),
    "hotplug attachment": launcher(labels={"kubevirt.io": "hotplug-disk"}),
    "share-manager elsewhere": builders.share_manager_pod("pvc-none", namespace="default"),
    "another pod of longhorn's": builders.share_manager_pod("pvc-none", labels={"longhorn.io/component": "ui"}),
    "own namespace": safe(launcher(NAME)),
    "kube-system": launcher("kube-system"),
}


@pytest.fixture(scope="module")
def server(installed: Installed) -> Iterator[Serving]:
    """The program, asked."""
    installed.enable()
    with installed.serving("--log-level", "debug") as server:  # the level of a pod that is not that of a VM
        installed.until_called()
        yield server
    installed.disable()


@pytest.fixture
def api(installed: Installed) -> Api:
    """The API server."""
    return installed.plane.api


@pytest.mark.parametrize("pod", ASKED.values(), ids=ASKED)
def test_it_is_asked_once(pod: Object, server: Serving, api: Api) -> None:
    """A pod whose annotation is not "false" is asked about, once. The target of a migration is another matter."""
    before = len(admission_lines(server))
    created = api.create(pod, dryRun="All")
    [line] = admission_lines(server)[before:]
    assert line["entry"] == "virt-launcher"
    assert (line["pod"], line["namespace"]) == (created["metadata"]["generateName"], created["metadata"]["namespace"])


STEERED: Final = {
    "share-manager": builders.share_manager_pod("pvc-none"),
    "without its volume's label": builders.share_manager_pod("pvc-none", labels={"longhorn.io/share-manager": ""}),
    "on a node": builders.share_manager_pod("pvc-none", nodeName="node-of-no-pod"),
}


@pytest.mark.parametrize("pod", STEERED.values(), ids=STEERED)
def test_a_share_manager_pod_is_asked_about_by_its_own_entry(pod: Object, server: Serving, api: Api) -> None:
    """In Longhorn's namespace, whatever else it is like: once, and not as a VM's pod."""
    before = len(admission_lines(server))
    api.create(pod, dryRun="All")
    [line] = admission_lines(server)[before:]
    assert (line["entry"], line["pod"]) == ("share-manager", "share-manager-pvc-none")


@pytest.mark.parametrize("pod", NOT_ASKED.values(), ids=NOT_ASKED)
def test_it_is_not_asked(pod: Object, server: Serving, api: Api) -> None:
    """Any other pod is created without a call, and not by way of an error either."""
    counted = Counted(api)
    before = len(admission_lines(server))
    api.create(pod, dryRun="All")
    assert len(admission_lines(server)) == before
    more = counted.more()
    assert (more(FAIL_OPEN), more(EVALUATION_ERRORS)) == (0, 0)


def test_only_creation_is_asked_about(server: Serving, api: Api, installed: Installed) -> None:
    """What happens to a pod after its creation is not our business: change, status, binding, end."""
    pod = api.create(launcher(schedulerName="nobody"))
    node = installed.plane.api.create(builders.node("node-of-one-pod"))
    before = len(admission_lines(server))
    try:
        api.patch(pod, {"metadata": {"annotations": {builders.OPT_IN: "required"}, "labels": {"more": "true"}}})
        api.patch(pod, {"status": {"message": "changed"}}, subresource="status")
        target = {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"]}
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod["metadata"]["name"]},
            "target": target,
        }
        api.call("POST", f"{api.path(pod)}/binding", binding)
        assert api.get(pod)["spec"]["nodeName"] == "node-of-one-pod"
    finally:
        api.delete(pod)
        api.delete(node)
    assert len(admission_lines(server)) == before
