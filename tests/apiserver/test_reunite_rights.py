"""reunite with the account of its component, on a real API server: its rights suffice, and it can do nothing else."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api, Object
from support.control_plane.kubevirt_kinds import crd
from support.control_plane.kustomizing import kustomize
from support.control_plane.rendering import REUNITE, with_component
from support.drivers.serving import ROOT
from support.drivers.status_runs import instance
from support.objects import builders
from support.scenarios.admitting import until
from support.scenarios.vm_scenes import reasons_of, scenes

from webhook.core.reunite.migration import LABEL_REUNITE

ACCOUNT: Final = f"{NAME}-reunite"
NAMESPACE: Final = builders.NAMESPACE
KINDS: Final = ("VirtualMachineInstance", "VirtualMachineInstanceMigration", "VirtualMachine", "KubeVirt")
MIGRATIONS: Final = ("kubevirt.io/v1", "VirtualMachineInstanceMigration", NAMESPACE)
KUBEVIRT: Final = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "KubeVirt",
    "metadata": {"name": "kubevirt", "namespace": "default"},
    "status": {"observedKubeVirtVersion": "v1.8.0"},
}
OWN_ALONE: Final = "reunite may create and delete only migrations with the label kubevirt-scheduler/reunite"
MESSAGE: Final = "in-flight migration detected"
POLICY_API: Final = "admissionregistration.k8s.io/v1"
REFUSES: Final[list[Object]] = [
    {
        "apiVersion": POLICY_API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "kubevirt-refuses"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["kubevirt.io"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["virtualmachineinstancemigrations"],
                    }
                ]
            },
            "validations": [{"expression": "false", "message": MESSAGE}],
        },
    },
    {
        "apiVersion": POLICY_API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "kubevirt-refuses"},
        "spec": {"policyName": "kubevirt-refuses", "validationActions": ["Deny"]},
    },
]
"""Refuses each migration, in the words of KubeVirt's own admission (migration-create-admitter.go)."""


@pytest.fixture(scope="module")
def account(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster with a VM that is apart, the component, and the kubeconfig of the component's account."""
    plane = installed.plane
    rendered = kustomize(with_component(REUNITE, tmp_path_factory.mktemp("manifests")))
    component = [each for each in rendered if each["metadata"]["name"] == ACCOUNT]
    plane.install([*map(crd, KINDS), *component])
    vmi = instance("moved")
    vmi["status"]["phase"] = "Running"
    try:
        with ClusterState(plane.api) as state:
            state.become(scenes())
            for each in (vmi, KUBEVIRT):
                plane.api.create(each)
            user = plane.service_account(NAME, ACCOUNT)
            yield plane.kubeconfig(tmp_path_factory.mktemp("account") / "kubeconfig", user)
    finally:
        for each in (*map(crd, KINDS), *component):
            plane.api.delete(each, missing_ok=True)


@pytest.fixture(autouse=True)
def _no_migrations(account: Path, installed: Installed) -> Iterator[None]:
    """Each test ends without a migration."""
    assert account
    yield
    for each in installed.plane.api.items(*MIGRATIONS):
        installed.plane.api.delete(each)


@contextmanager
def service(kubeconfig: Path, log: Path) -> Iterator[Callable[[], str]]:
    """A `reunite` process that writes, killed at the end. Yields a function that returns its log."""
    command = [sys.executable, "-m", "webhook", "reunite", "--kubeconfig", str(kubeconfig), "--dry-run", "off"]
    with log.open("wb") as out:
        process = subprocess.Popen([*command, "--health-listen", "127.0.0.1:0"], cwd=ROOT, stderr=out)  # noqa: S603 - ours
    try:
        yield log.read_text
    finally:
        process.kill()
        process.wait()


def names(api: Api) -> list[str]:
    """The names of all migrations."""
    return [each["metadata"]["name"] for each in api.items(*MIGRATIONS)]


def test_the_rights_of_the_component_suffice(account: Path, installed: Installed, tmp_path: Path) -> None:
    """A VM that is apart gets its migration and its Event, and the API server refuses no request."""
    api = installed.plane.api
    refusals = api.metric("apiserver_request_total", code="403")
    with service(account, tmp_path / "log") as log:
        until(lambda: names(api) == ["moved-reunite-1"], lambda: f"the migration: {log()}")
        until(lambda: "ReuniteStarted" in reasons_of(api, "moved"), lambda: f"the Event: {log()}")
    assert api.metric("apiserver_request_total", code="403") == refusals


def test_a_refusal_of_kubevirt_ends_nothing(account: Path, installed: Installed, tmp_path: Path) -> None:
    """The program logs the refusal. It creates the migration as soon as KubeVirt takes one."""
    api = installed.plane.api
    for each in REFUSES:
        api.create(each)
    try:
        until(lambda: MESSAGE in probed(api), "the policy")
        with service(account, tmp_path / "log") as log:
            until(lambda: MESSAGE in log(), lambda: f"the refusal: {log()}")
            assert names(api) == []
            for each in REFUSES:
                api.delete(each)
            until(lambda: names(api) == ["moved-reunite-1"], lambda: f"the migration: {log()}")
    finally:
        for each in REFUSES:
            api.delete(each, missing_ok=True)


def migration(name: str, **labels: str) -> Object:
    """A migration of the VM."""
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": MIGRATIONS[0], "kind": MIGRATIONS[1], "metadata": metadata, "spec": {"vmiName": "moved"}}


def probed(api: Api) -> str:
    """What the API server says against a migration that is not kept; empty if it takes it."""
    try:
        api.create(migration("probe"), dryRun="All")
    except ApiError as error:
        return error.message
    return ""


def test_the_account_may_delete_only_its_own_migrations(account: Path, installed: Installed) -> None:
    """One that virt-controller has not begun; never that of a drain. It may not create one without its label either."""
    assert account
    plane = installed.plane
    own, drain = (plane.api.create(each) for each in (migration("late", **{LABEL_REUNITE: "true"}), migration("drain")))
    api = plane.as_user(plane.service_account(NAME, ACCOUNT))

    def refused() -> str:
        try:
            api.delete(drain, dryRun="All")
        except ApiError as error:
            return error.message
        return ""

    until(lambda: OWN_ALONE in refused(), "the policy")
    for attempt in (lambda: api.delete(drain), lambda: api.create(migration("other"))):
        with pytest.raises(ApiError, match=OWN_ALONE):
            attempt()
    api.delete(own)
    assert names(plane.api) == ["drain"]


REFUSED: Final[dict[str, Callable[[Api], Any]]] = {
    "change a migration": lambda api: api.patch(migration("x"), {"spec": {"vmiName": "other"}}),
    "change a VM": lambda api: api.patch(instance("moved"), {"metadata": {"labels": {"changed": "true"}}}),
    "delete a VM": lambda api: api.delete(instance("moved")),
    "delete a pod": lambda api: api.delete(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": NAMESPACE}}
    ),
    "delete many migrations": lambda api: api.call(
        "DELETE", f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachineinstancemigrations"
    ),
    "read Secrets": lambda api: api.items("v1", "Secret", NAME),
    "read Events": lambda api: api.items("v1", "Event", NAMESPACE),
    "cordon a node": lambda api: api.patch(builders.node("node-a"), {"spec": {"unschedulable": True}}),
    "change KubeVirt": lambda api: api.patch(KUBEVIRT, {"spec": {"configuration": {}}}),
    "change a ShareManager": lambda api: api.patch(builders.share_manager("page"), {"spec": {"image": "x"}}),
}


@pytest.mark.parametrize("attempt", REFUSED.values(), ids=REFUSED)
def test_the_account_is_refused(attempt: Callable[[Api], Any], account: Path, installed: Installed) -> None:
    """By the API server: 403, whatever is there or not there."""
    assert account
    api = installed.plane.as_user(installed.plane.service_account(NAME, ACCOUNT))
    with pytest.raises(ApiError) as caught:
        attempt(api)
    assert caught.value.status == http.client.FORBIDDEN
