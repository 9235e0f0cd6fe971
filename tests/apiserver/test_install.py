"""The installs on a real API server, with kubectl, as a cluster admin applies them, upgrades them and removes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml
from controlplane import build
from support.control_plane.certs_process import AUTHORITY_SECRET, CONFIGURATION, SECRET, keeper, trust
from support.control_plane.control_plane import ControlPlane
from support.control_plane.kube_api import Object
from support.control_plane.kubectl import Identity, Kubectl, end_namespace, everything
from support.control_plane.rendering import (
    CERT_MANAGER,
    DEFAULT,
    INSTALLS,
    MANIFESTS,
    NAME,
    identity,
    installed,
)
from support.objects import builders

from webhook import __version__

LONGHORN: Final[Object] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": builders.LONGHORN_NAMESPACE},
}
NAMESPACE: Final[Identity] = ("Namespace", "", NAME)
CLIENT_SIDE: Final = ("apply", "--validate=strict", "-f")
SERVER_SIDE: Final = ("apply", "--validate=strict", "--server-side", "-f")
KUSTOMIZED: Final = ("apply", "--validate=strict", "-k")
BOTH: Final = {"client-side": CLIENT_SIDE, "server-side": SERVER_SIDE}
OF_THE_API_SERVER: Final = ("IPAddress",)  # a Service's, made and deleted with it

KEPT: Final = (SECRET, AUTHORITY_SECRET)

each_install = pytest.mark.parametrize("install", INSTALLS)
each_way = pytest.mark.parametrize("way", BOTH.values(), ids=BOTH)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of one's own, with Longhorn's and cert-manager's kinds, and Longhorn's namespace."""
    with ControlPlane(tmp_path_factory.mktemp("own"), scheduler=False) as own:
        own.install(yaml.safe_load(file.read_text(encoding="utf-8")) for file in build.cert_manager_crds())
        own.api.create(LONGHORN)
        yield own


@pytest.fixture
def admin(plane: ControlPlane, tmp_path: Path) -> Iterator[Kubectl]:
    """kubectl; afterwards the cluster must be as it was before, whatever was done."""
    before = everything(plane.api)
    yield Kubectl(plane, tmp_path)
    now = everything(plane.api)
    left, gone = now.keys() - before.keys(), before.keys() - now.keys()
    for key in left:
        plane.api.delete(now[key], missing_ok=True)
    if NAMESPACE in left:
        end_namespace(plane.api, NAME)
    assert (left, gone) == (set(), set())


def remove(plane: ControlPlane, admin: Kubectl, install: str = DEFAULT) -> list[Identity]:
    """Uninstall, and end the namespace. Returns what the namespace controller found left in it."""
    admin("delete", "--wait=false", "-f", MANIFESTS / install)
    return end_namespace(plane.api, NAME)


@each_install
@each_way
def test_an_install_comes_and_goes_whole(
    install: str, way: tuple[str, ...], plane: ControlPlane, admin: Kubectl
) -> None:
    """Everything in it is made, without a warning, and nothing else; deleting it by name leaves an empty namespace."""
    before = everything(plane.api)
    admin(*way, MANIFESTS / install)
    made = [key for key in everything(plane.api).keys() - before.keys() if key[0] not in OF_THE_API_SERVER]
    assert sorted(made) == sorted(map(identity, installed(install)))
    admin("delete", "--wait=false", "-f", MANIFESTS / install)
    assert everything(plane.api).keys() - before.keys() == {NAMESPACE}
    assert end_namespace(plane.api, NAME) == []
    assert everything(plane.api).keys() == before.keys()


@pytest.mark.parametrize(
    ("first", "second"),
    [(CLIENT_SIDE, CLIENT_SIDE), (SERVER_SIDE, SERVER_SIDE), (CLIENT_SIDE, SERVER_SIDE)],
    ids=["client-side", "server-side", "client-side, then server-side"],
)
def test_an_upgrade_keeps_the_certificate_and_its_trust(
    first: tuple[str, ...], second: tuple[str, ...], plane: ControlPlane, admin: Kubectl, tmp_path: Path
) -> None:
    """The same version applied again, and then another: no Secret is touched, nor what API servers trust."""
    admin(*first, MANIFESTS / DEFAULT)
    with keeper(plane, tmp_path):
        pass
    kept, trusted = [plane.api.get(each) for each in KEPT], plane.api.get(CONFIGURATION)
    admin(*second, MANIFESTS / DEFAULT)
    admin(*second, released(tmp_path, "9.9.9"))
    upgraded = plane.api.get(CONFIGURATION)
    assert upgraded["metadata"]["labels"]["app.kubernetes.io/version"] == "9.9.9"
    assert trust(upgraded) == trust(trusted)
    assert [plane.api.get(each) for each in KEPT] == kept
    assert set(remove(plane, admin)) == set(map(identity, KEPT))


def released(directory: Path, version: str) -> Path:
    """The install of another release."""
    file = directory / DEFAULT
    file.write_text((MANIFESTS / DEFAULT).read_text(encoding="utf-8").replace(__version__, version), encoding="utf-8")
    return file


def test_nothing_comes_back_while_the_controller_still_runs(
    plane: ControlPlane, admin: Kubectl, tmp_path: Path
) -> None:
    """Pods outlive the rights that they had: the certificate controller makes no Secret in place of a deleted one."""
    before = everything(plane.api)
    admin(*KUSTOMIZED, MANIFESTS)
    with keeper(plane, tmp_path) as says:
        assert set(remove(plane, admin)) == set(map(identity, KEPT))
        says("can't read or write the objects, trying again")
        assert everything(plane.api).keys() == before.keys()


def test_cert_manager_can_take_over_and_give_back(plane: ControlPlane, admin: Kubectl, tmp_path: Path) -> None:
    """As the page says: the other overlay, then delete the folder that it does not have. And the way back."""
    before = everything(plane.api)
    admin(*KUSTOMIZED, MANIFESTS)
    with keeper(plane, tmp_path):
        pass
    admin(*CLIENT_SIDE, MANIFESTS / CERT_MANAGER)
    admin("delete", "-f", MANIFESTS / DEFAULT, "-l", "app.kubernetes.io/component=certs")
    assert grown(plane, before) == set(map(identity, [*installed(CERT_MANAGER), *KEPT]))
    assert "cert-manager.io/inject-ca-from" in plane.api.get(CONFIGURATION)["metadata"]["annotations"]
    admin(*KUSTOMIZED, MANIFESTS)
    admin("delete", "-n", NAME, "certificates.cert-manager.io,issuers.cert-manager.io", "--all")
    assert grown(plane, before) == set(map(identity, [*installed(DEFAULT), *KEPT]))
    assert "cert-manager.io/inject-ca-from" not in plane.api.get(CONFIGURATION)["metadata"]["annotations"]
    assert set(remove(plane, admin)) == set(map(identity, KEPT))


def grown(plane: ControlPlane, before: dict[Identity, Object]) -> set[Identity]:
    """What there is more than before."""
    return {key for key in everything(plane.api).keys() - before.keys() if key[0] not in OF_THE_API_SERVER}


def test_longhorn_can_come_later(plane: ControlPlane, admin: Kubectl) -> None:
    """Without its namespace all the rest is installed, and the error names it; a second apply completes the install."""
    plane.api.delete(LONGHORN)
    end_namespace(plane.api, builders.LONGHORN_NAMESPACE)
    before = everything(plane.api)
    said = admin.said(*KUSTOMIZED, MANIFESTS)
    absent = {("Role", builders.LONGHORN_NAMESPACE, NAME), ("RoleBinding", builders.LONGHORN_NAMESPACE, NAME)}
    assert said.code == 1
    assert said.errors.count(f'namespaces "{builders.LONGHORN_NAMESPACE}" not found') == len(absent)
    assert grown(plane, before) == set(map(identity, installed())) - absent
    plane.api.create(LONGHORN)
    admin(*KUSTOMIZED, MANIFESTS)
    assert grown(plane, before) == {*map(identity, installed()), identity(LONGHORN)}
    assert remove(plane, admin) == []
