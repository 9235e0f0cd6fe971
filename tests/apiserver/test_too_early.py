"""What the program needs of the cluster comes late, or goes and comes again: it says what is missing, and recovers."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_api import Object
from support.scenarios.admitting import FAIL_OPEN, WEBHOOK, Counted, until
from support.scenarios.moving_share_manager import shelf
from support.scenarios.proxied_serve import ProxiedServe, allowed, proxied_serve

SECRET: Final[Object] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "what-the-token-is-bound-to", "namespace": NAME},
}
LONGHORNS: Final = ("sharemanagers.longhorn.io", "nodes.longhorn.io")
KUBERNETES: Final = ("persistentvolumeclaims", "persistentvolumes", "nodes", "share-manager pods")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The program's manifests on a control plane without Longhorn."""
    directory = tmp_path_factory.mktemp("without-longhorn")
    with ControlPlane(directory, scheduler=False, longhorn=False) as plane:
        yield Installed(plane, directory)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """A file with a token that nobody has issued."""
    file = tmp_path / "token"
    file.write_text("nobody's\n")
    return file


@pytest.fixture
def kubeconfig(bare: Installed, token_file: Path, tmp_path: Path) -> Path:
    """A kubeconfig that names the file."""
    file = bare.plane.kubeconfig(tmp_path / "kubeconfig", bare.plane.admin)
    config = json.loads(file.read_text())
    config["users"][0]["user"] = {"tokenFile": str(token_file)}
    file.write_text(json.dumps(config))
    return file


def bound_token(plane: ControlPlane) -> str:
    """A token of the program's account that is good for as long as a certain Secret is there."""
    uid = plane.api.apply(SECRET)["metadata"]["uid"]
    bound = {"apiVersion": "v1", "kind": "Secret", "name": SECRET["metadata"]["name"], "uid": uid}
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 7200, "boundObjectRef": bound},
    }
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": NAME}}
    token: str = plane.api.call("POST", plane.api.path(account, "token"), asked).body["status"]["token"]
    return token


def until_told(program: ProxiedServe, problem: str, *names: str) -> None:
    """Wait until these caches name the problem."""
    until(
        lambda: all(problem in program.caches()[name].detail for name in names),
        lambda: f"{problem}: {program.caches()}",
    )


def test_everything_comes_later_than_the_program(bare: Installed, kubeconfig: Path, token_file: Path) -> None:
    """Token, permissions, Longhorn: each is missed by name, no pod waits for it, and all works once it is there."""
    plane = bare.plane
    counted = Counted(plane.api)
    bare.enable()
    with proxied_serve(bare, kubeconfig) as early:
        early.share_manager.become(shelf())
        with allowed(plane):
            bare.until_called()
            until_told(early, "not synced: unauthorized: 401", *KUBERNETES)
            assert early.asked().decision.startswith("unchanged: OwnerLookupFailed: ")
            assert "401 Unauthorized" in early.asked().decision

            token_file.write_text(f"{bound_token(plane)}\n")
            until_told(early, "not synced: forbidden: 403", *KUBERNETES)
            assert "403 Forbidden" in early.asked().decision

        until(lambda: all(early.caches()[name].watched for name in KUBERNETES), "caches of Kubernetes' own kinds")
        until_told(early, "not installed: 404", *LONGHORNS)
        assert early.asked().decision.startswith("unchanged: ShareManagerNotFound: ")

        plane.install_longhorn()
        early.share_manager.settle()
        early.assert_well()
        assert counted.more()(FAIL_OPEN, name=WEBHOOK) == 0


def test_a_token_ends_and_is_renewed(bare: Installed, kubeconfig: Path, token_file: Path) -> None:
    """The program reads its file again by itself, and knows by then what has changed in between."""
    plane = bare.plane
    plane.install_longhorn()
    token_file.write_text(bound_token(plane))
    bare.enable()
    with proxied_serve(bare, kubeconfig) as running:
        running.share_manager.settle()
        bare.until_called()
        running.assert_well()

        plane.api.delete(SECRET)
        plane.restart_api_server(signal.SIGKILL)  # it believes a token for 10 s, and forgets that by this
        until_told(running, "unauthorized: 401", *KUBERNETES, *LONGHORNS)
        running.share_manager.move("node-b")
        token_file.write_text(bound_token(plane))
        running.assert_well()
