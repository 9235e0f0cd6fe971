"""The Helm chart on a real API server, with the real helm: installed, upgraded, rolled back and uninstalled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from controlplane.build import HELM_MAJORS
from support.control_plane.certs_process import AUTHORITY_SECRET, CONFIGURATION, SECRET, keeper, trust
from support.control_plane.chart import CHART, Helm, switch
from support.control_plane.control_plane import ControlPlane
from support.control_plane.kube_api import Object
from support.control_plane.kubectl import Identity, Kubectl, end_namespace, everything
from support.control_plane.rendering import MANIFESTS, NAME, at, identity, installed
from support.objects import builders

DEPLOYMENT: Final[Object] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": NAME, "namespace": NAME},
}
NAMESPACE: Final[Identity] = ("Namespace", "", NAME)
OF_THE_API_SERVER: Final = ("IPAddress",)  # a Service's, made and deleted with it
RELEASES: Final = "sh.helm.release."  # Secrets in which helm stores what it has installed
ARGUMENTS: Final = "spec.template.spec.containers.0.args"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of one's own, with Longhorn's namespace and nothing installed."""
    with ControlPlane(tmp_path_factory.mktemp("own"), scheduler=False) as own:
        own.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": builders.LONGHORN_NAMESPACE}})
        yield own


@pytest.fixture(params=HELM_MAJORS)
def helm(plane: ControlPlane, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Helm]:
    """helm, of each major version; afterwards the cluster is as it was before."""
    before = everything(plane.api)
    yield Helm(plane, tmp_path, major=request.param)
    plane.api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}}, missing_ok=True)
    end_namespace(plane.api, NAME)
    now = everything(plane.api)
    left = now.keys() - before.keys()
    for key in left:
        plane.api.delete(now[key], missing_ok=True)
    assert left == set()


def grown(plane: ControlPlane, before: dict[Identity, Object]) -> set[Identity]:
    """What there is more than before, and is not helm's own."""
    more = everything(plane.api).keys() - before.keys()
    return {key for key in more if key[0] not in OF_THE_API_SERVER and not key[2].startswith(RELEASES)}


def test_a_release_comes_changes_and_goes(plane: ControlPlane, helm: Helm, tmp_path: Path) -> None:
    """It is what `kubectl apply -k manifests` makes. No step takes the certificate, or API servers' trust in it."""
    before = everything(plane.api)
    notes = helm.install()
    assert "1. Wait until it runs, and check it:" in notes
    assert f"helm test {NAME} -n {NAME} --logs" in notes
    assert grown(plane, before) == set(map(identity, installed()))
    with keeper(plane, tmp_path):
        pass
    secret, trusted = plane.api.get(SECRET), trust(plane.api.get(CONFIGURATION))
    assert trusted
    helm.upgrade("--set=webhook.mode=preferred,longhorn.namespace=" + builders.LONGHORN_NAMESPACE)
    assert "--mode=preferred" in at(ARGUMENTS, plane.api.get(DEPLOYMENT))
    assert (plane.api.get(SECRET), trust(plane.api.get(CONFIGURATION))) == (secret, trusted)
    helm("rollback", NAME, "1")
    assert "--mode=required" in at(ARGUMENTS, plane.api.get(DEPLOYMENT))
    assert (plane.api.get(SECRET), trust(plane.api.get(CONFIGURATION))) == (secret, trusted)
    helm("uninstall", NAME)
    assert grown(plane, before) == {NAMESPACE, identity(SECRET), identity(AUTHORITY_SECRET)}


def test_a_new_entry_takes_its_place_and_no_trust(plane: ControlPlane, helm: Helm, tmp_path: Path) -> None:
    """An upgrade adds entries. The others keep their caBundle, and the certificate controller writes the new ones'."""
    helm.install()
    with keeper(plane, tmp_path):
        pass
    trusted = trust(plane.api.get(CONFIGURATION))
    helm.upgrade(switch("opt-in-all", on=True))
    entries = plane.api.get(CONFIGURATION)["webhooks"]
    assert [entry["name"].partition(".")[0] for entry in entries] == [
        "virt-launcher",
        "share-manager",
        "virt-launcher-in-namespace",
        "virt-launcher-of-all",
    ]
    assert [entry["clientConfig"].get("caBundle", "") for entry in entries] == [*[trusted] * 3, ""]
    with keeper(plane, tmp_path):
        assert trust(plane.api.get(CONFIGURATION)) == trusted
    helm("rollback", NAME, "1")
    entries = plane.api.get(CONFIGURATION)["webhooks"]
    assert [entry["name"].partition(".")[0] for entry in entries] == [
        "virt-launcher",
        "share-manager",
        "virt-launcher-in-namespace",
    ]
    assert trust(plane.api.get(CONFIGURATION)) == trusted
    helm("uninstall", NAME)


def test_an_install_by_kubectl_is_taken_over_on_request_only(plane: ControlPlane, helm: Helm, tmp_path: Path) -> None:
    """Helm refuses, and names an object that is not its own. With --take-ownership nothing is lost."""
    Kubectl(plane, tmp_path)("apply", "-k", MANIFESTS)
    with keeper(plane, tmp_path):
        pass
    objects = everything(plane.api).keys()
    kept = [plane.api.get(each) for each in (DEPLOYMENT, CONFIGURATION, SECRET)]
    said = helm.said("install", NAME, str(CHART))
    assert said.code != 0
    assert "invalid ownership metadata" in said.errors
    assert [plane.api.get(each) for each in (DEPLOYMENT, CONFIGURATION, SECRET)] == kept
    helm.take_over()
    assert plane.api.get(SECRET) == kept[2]
    assert trust(plane.api.get(CONFIGURATION)) == trust(kept[1])
    assert {key for key in everything(plane.api).keys() - objects if not key[2].startswith(RELEASES)} == set()
    helm("uninstall", NAME)
