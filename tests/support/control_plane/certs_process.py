"""The certificate controller as a process, and what API servers trust."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from support.control_plane.control_plane import ControlPlane
from support.control_plane.kube_api import Object
from support.control_plane.rendering import AUTHORITY, CERTS, NAME, TLS
from support.drivers.serving import spawned, until_logged

SECRET: Final[Object] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": TLS, "namespace": NAME}}
AUTHORITY_SECRET: Final[Object] = {**SECRET, "metadata": {"name": AUTHORITY, "namespace": NAME}}
CONFIGURATION: Final[Object] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": NAME},
}


@contextmanager
def keeper(plane: ControlPlane, directory: Path) -> Iterator[Callable[[str], object]]:
    """`certs keep` as its own service account, with the certificate issued and published; waits for what it says."""
    kubeconfig = plane.kubeconfig(directory / f"{CERTS}.kubeconfig", plane.service_account(NAME, CERTS))
    command = [sys.executable, "-m", "certs", "keep", "--kubeconfig", str(kubeconfig), "--listen", "127.0.0.1:0"]
    log = directory / "keep.log"
    with spawned(command, log) as process:
        until_logged(process, log, "keeping")
        plane.api.wait_for(SECRET, lambda found: "tls.crt" in ((found or {}).get("data") or {}), what="with a pair")
        plane.api.wait_for(CONFIGURATION, lambda found: bool(trust(found)), what="with a caBundle")
        yield lambda message: until_logged(process, log, message)


def trust(configuration: Object | None) -> str:
    """The caBundle of every entry; empty where they have not the same."""
    bundles = {entry["clientConfig"].get("caBundle", "") for entry in (configuration or {})["webhooks"]}
    return bundles.pop() if len(bundles) == 1 else ""
