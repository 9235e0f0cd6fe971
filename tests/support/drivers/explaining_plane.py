"""explain against a real API server, as one of several users."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.control_plane import ControlPlane, User
from support.objects import builders

from webhook import cli

RBAC: Final = "rbac.authorization.k8s.io/v1"
NAMESPACE: Final = builders.NAMESPACE
Run = Callable[..., tuple[int, str, str]]


def runner(plane: ControlPlane, directory: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs explain as a user; as the admin by default."""

    def run(words: str, user: User | None = None, **changed: Any) -> tuple[int, str, str]:
        kubeconfig = plane.kubeconfig(directory / "kubeconfig", user or plane.admin, **changed)
        asked = words.split()
        within = [] if "-n" in asked else ["-n", NAMESPACE]
        code = cli.main(["explain", *asked, *within, "--kubeconfig", str(kubeconfig), "-o", "json"])
        return code, *capsys.readouterr()

    return run


def viewer_binding(role: str) -> dict[str, Any]:
    """Return the ClusterRoleBinding that gives a ClusterRole to the service account of the same name."""
    return {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": role, "namespace": NAMESPACE}],
    }


def service_account(plane: ControlPlane, name: str) -> User:
    """Create a service account of this name in the VMs' namespace."""
    plane.api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}})
    return plane.service_account(NAMESPACE, name)
