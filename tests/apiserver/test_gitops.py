"""Argo CD and Flux see no difference after the certificate controller wrote `caBundle`, which no rendered object has.

Both find differences by a server-side dry run as a field manager of their own: Argo CD with ServerSideDiff, Flux
always. The tools themselves do not run here; kubectl asks the API server as they do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.certs_process import CONFIGURATION, keeper, trust
from support.control_plane.control_plane import ControlPlane
from support.control_plane.kube_api import Object
from support.control_plane.kubectl import Identity, Kubectl
from support.control_plane.rendering import MANIFESTS, NAME, identity, installed
from support.objects import builders

MANAGER: Final = "argocd-controller"  # Flux has another name, and asks in the same way
DEPLOYMENT: Final[Object] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": NAME, "namespace": NAME},
}
_OF_THE_WRITE: Final = ("managedFields", "resourceVersion")  # who wrote, and when: no part of what is wanted


@pytest.fixture
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of one's own, with Longhorn's namespace and nothing installed."""
    with ControlPlane(tmp_path_factory.mktemp("own"), scheduler=False) as own:
        own.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": builders.LONGHORN_NAMESPACE}})
        yield own


class Tool:
    """Applies the install on the server, as one field manager. Without force a conflict fails."""

    def __init__(self, plane: ControlPlane, directory: Path) -> None:
        self._api = plane.api
        self._kubectl = Kubectl(plane, directory)
        self._words = ("apply", "--server-side", f"--field-manager={MANAGER}", "-o", "json", "-k", MANIFESTS)

    def sync(self) -> None:
        """Apply for good."""
        self._kubectl(*self._words)

    def differences(self, *flags: str) -> set[Identity]:
        """The objects that an apply would change, by a dry run."""
        found = json.loads(self._kubectl(*self._words, "--dry-run=server", *flags))["items"]
        assert {identity(item) for item in found} == set(map(identity, installed()))
        return {identity(item) for item in found if wanted(item) != wanted(self._api.get(item))}


def wanted(item: Object) -> dict[str, Any]:
    """The object without what every write changes."""
    return {**item, "metadata": {key: value for key, value in item["metadata"].items() if key not in _OF_THE_WRITE}}


def test_a_synced_install_has_no_difference_after_the_injection(plane: ControlPlane, tmp_path: Path) -> None:
    """Nor does the next sync take the caBundle away. What somebody changes by hand is a difference."""
    tool = Tool(plane, tmp_path)
    tool.sync()
    with keeper(plane, tmp_path):
        pass
    injected = trust(plane.api.get(CONFIGURATION))
    assert tool.differences() == set()
    tool.sync()
    assert trust(plane.api.get(CONFIGURATION)) == injected
    assert tool.differences() == set()
    plane.api.patch(DEPLOYMENT, {"spec": {"replicas": 7}})
    assert tool.differences("--force-conflicts") == {identity(DEPLOYMENT)}
