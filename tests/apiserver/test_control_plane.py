"""The control plane under the tests is what it says, and the program may do on it what its RBAC says and no more."""

from __future__ import annotations

import http.client
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from controlplane.build import programs
from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api
from support.objects import builders
from support.objects.builders import LONGHORN_API_VERSION, LONGHORN_NAMESPACE, NAMESPACE

SECONDS: Final = 30.0

# All that is allowed: (namespace, group, resource); the namespace None stands for the whole cluster.
ALL: Final = frozenset({"get", "list", "watch"})
READ: Final = {
    (None, "", "persistentvolumeclaims"): ALL,
    (None, "", "persistentvolumes"): ALL,
    (None, "", "nodes"): ALL,
    (None, "", "pods"): {"list", "watch"},
    (None, "storage.k8s.io", "csinodes"): {"list", "watch"},
    (LONGHORN_NAMESPACE, "", "pods"): ALL,
    (LONGHORN_NAMESPACE, "longhorn.io", "sharemanagers"): ALL,
    (LONGHORN_NAMESPACE, "longhorn.io", "nodes"): ALL,
    (LONGHORN_NAMESPACE, "longhorn.io", "volumeattachments"): {"get"},
}
WRITING: Final = ("create", "update", "patch", "delete", "deletecollection")
FORBIDDEN: Final = {
    (None, "", "secrets"),
    (NAME, "", "secrets"),
    (None, "", "configmaps"),
    (None, "longhorn.io", "sharemanagers"),
    (None, "longhorn.io", "nodes"),
    (LONGHORN_NAMESPACE, "longhorn.io", "volumes"),
    (LONGHORN_NAMESPACE, "", "secrets"),
    (None, "admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of one's own, to be stopped and compacted at will."""
    with ControlPlane(tmp_path_factory.mktemp("own"), scheduler=False) as own:
        yield own


def test_a_restarted_api_server_has_everything_at_the_same_place(plane: ControlPlane) -> None:
    """After a restart the objects, the address and a service account's token are the same."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kept", "namespace": "default"}}
    plane.api.create(account)
    mine = plane.as_user(plane.service_account("default", "kept"))
    plane.restart_api_server()
    assert plane.api.get(account)["metadata"]["name"] == "kept"
    with pytest.raises(ApiError, match="cannot list resource") as caught:
        mine.items("v1", "Pod", "default")
    assert caught.value.status == http.client.FORBIDDEN


def test_a_compacted_revision_is_gone(plane: ControlPlane) -> None:
    """An API server whose history starts after a compaction answers 410 to a watch from before the compaction."""
    before = plane.api.create(_config_map("before"))["metadata"]["resourceVersion"]
    plane.api.create(_config_map("after"))
    assert plane.compact() > int(before)
    plane.restart_api_server()
    with closing(plane.api.watch("v1", "ConfigMap", "default", seconds=5, resourceVersion=before)) as events:
        event = next(events)
    assert (event["type"], event["object"]["code"]) == ("ERROR", http.client.GONE)


def test_nothing_outlives_the_tests(tmp_path: Path) -> None:
    """A test run that is killed takes every program of its control plane with it."""
    starting = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from pathlib import Path; from controlplane.build import programs\n"
        "from support.control_plane.control_plane import ControlPlane\n"
        f"plane = ControlPlane(Path({str(tmp_path)!r}), scheduler='kube-scheduler' in programs()).__enter__()\n"
        "print(*(program.pid for program in plane.programs), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(  # noqa: S603 - our own words
        [sys.executable, "-c", starting], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        ends = {pid: os.pidfd_open(int(pid)) for pid in run.stdout.readline().split()}
        assert len(ends) == len(programs())
        assert select.select(ends.values(), [], [], 0)[0] == []
        run.kill()
    for pid, end in ends.items():
        assert select.select([end], [], [], SECONDS)[0], f"process {pid} is still there"
        os.close(end)


@pytest.fixture(scope="module")
def account(installed: Installed) -> Api:
    """The API server as the program's own service account sees it."""
    return installed.plane.as_user(installed.plane.service_account(NAME, NAME))


@pytest.mark.parametrize(("namespace", "group", "resource"), sorted(READ, key=str))
def test_the_program_may_read_what_it_decides_on(
    namespace: str | None, group: str, resource: str, account: Api
) -> None:
    """Get, list and watch are allowed as far as each is used, and nothing that writes."""
    allowed = {verb for verb in ("get", "list", "watch", *WRITING) if _may(account, verb, namespace, group, resource)}
    assert allowed == READ[namespace, group, resource]


@pytest.mark.parametrize(("namespace", "group", "resource"), sorted(FORBIDDEN, key=str))
def test_the_program_may_do_nothing_else(namespace: str | None, group: str, resource: str, account: Api) -> None:
    """What no decision is made from can be neither read nor written."""
    allowed = [verb for verb in ("get", "list", "watch", *WRITING) if _may(account, verb, namespace, group, resource)]
    assert allowed == []


def test_a_longhorn_object_elsewhere_is_out_of_reach(account: Api) -> None:
    """The right to Longhorn's objects ends at Longhorn's namespace."""
    assert account.items(LONGHORN_API_VERSION, "ShareManager", LONGHORN_NAMESPACE) == []
    with pytest.raises(ApiError) as caught:
        account.items(LONGHORN_API_VERSION, "ShareManager", NAMESPACE)
    assert caught.value.status == http.client.FORBIDDEN


def _may(account: Api, verb: str, namespace: str | None, group: str, resource: str) -> bool:
    attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace or ""}
    asked = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": attributes},
    }
    allowed: bool = account.create(asked)["status"]["allowed"]
    return allowed


def _config_map(name: str) -> builders.Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def test_waiting_sees_what_is_removed_before_the_watch(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch begins where the list ended."""
    api = control_plane.api
    target = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "removed", "namespace": "default"}}
    api.create(target)
    watch = api.watch

    def late(*what: Any, **parameters: Any) -> Any:
        api.delete(target)
        return watch(*what, **parameters)

    monkeypatch.setattr(api, "watch", late)
    assert api.wait_for(target, lambda found: found is None, seconds=30, what="gone") is None
