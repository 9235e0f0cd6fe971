"""The certificate controller as a process with its own service account, in an install whose certificate it keeps."""

from __future__ import annotations

import copy
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from support.control_plane.control_plane import ControlPlane
from support.control_plane.kube_api import Object
from support.control_plane.rendering import AUTHORITY, CERTS, NAME, TLS, installed, the
from support.drivers.serving import spawned, until_logged
from support.waits import MAX_WAIT_SECONDS

from certs import pki, state
from certs.state import ClusterState, Secret

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
    log = directory / "keep.log"
    with _kept(kubeconfig, log) as process:
        plane.api.wait_for(SECRET, lambda found: "tls.crt" in ((found or {}).get("data") or {}), what="with a pair")
        plane.api.wait_for(CONFIGURATION, lambda found: bool(trust(found)), what="with a caBundle")
        yield lambda message: until_logged(process, log, message)


@contextmanager
def _kept(kubeconfig: Path, log: Path, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    words = ["keep", "--kubeconfig", str(kubeconfig), "--listen", "127.0.0.1:0", *flags]
    with spawned([sys.executable, "-m", "certs", *words], log) as process:
        until_logged(process, log, "keeping")
        yield process


def trust(configuration: Object | None) -> str:
    """The caBundle of every entry; empty where they have not the same."""
    bundles = {entry["clientConfig"].get("caBundle", "") for entry in (configuration or {})["webhooks"]}
    return bundles.pop() if len(bundles) == 1 else ""


NAMES: Final = pki.service_names(NAME, NAME, "cluster.local")
FLAGS: Final = ("--propagation-seconds", "0.5", "--retire-seconds", "1")


class CertsInstall:
    """The install on an API server, with the certificate controller's account. Secrets and bundle are still empty."""

    def __init__(self, plane: ControlPlane, directory: Path, port: int) -> None:
        self.plane, self.api, self.directory = plane, plane.api, directory
        self.manifests = [
            dict(each)
            for each in installed()
            if each["metadata"]["labels"].get("app.kubernetes.io/component") == "certs" and each["kind"] != "Deployment"
        ]
        self.configuration = copy.deepcopy(dict(the("MutatingWebhookConfiguration")))
        for entry in self.configuration["webhooks"]:
            entry["clientConfig"]["service"]["port"] = port
        self.names = NAMES
        self._keepers = 0

    def __enter__(self) -> Self:
        self.__exit__()
        self.plane.install([*self.manifests, self.configuration])
        self.account = self.plane.service_account(NAME, CERTS)
        self.kubeconfig = self.plane.kubeconfig(self.directory / "certs.kubeconfig", self.account)
        return self

    def __exit__(self, *_: object) -> None:
        for secret in (SECRET, AUTHORITY_SECRET):
            self.api.delete(secret, missing_ok=True)
        self.api.delete(CONFIGURATION, missing_ok=True)

    def state(self) -> ClusterState:
        """The objects as the admin sees them."""
        found = [self.api.find(path) for path in (SECRET, AUTHORITY_SECRET)]
        served, authority = (state.read_secret(raw) if raw else Secret() for raw in found)
        return ClusterState(
            served=served,
            authority=authority,
            configuration=state.read_configuration(self.api.get(CONFIGURATION)),
        )

    def is_good(self) -> bool:
        """Whether there is a pair of the authority that can be served, and that authority is published alone."""
        seen = self.state()
        current = pki.examine(seen.served.pair, NAMES, datetime.now(UTC))
        return isinstance(current, pki.Servable) and all(
            bundle == seen.served.pair.authority
            for bundle in (seen.authority.pair.certificate, *seen.configuration.bundles)
        )

    def until(self, accept: Callable[[], bool], seconds: float = MAX_WAIT_SECONDS) -> float:
        """Wait for a state; how long that took."""
        started = time.monotonic()
        while not accept():
            assert time.monotonic() - started < seconds, f"not so in {seconds} s: {self.state()}"
            time.sleep(0.01)
        return time.monotonic() - started

    @contextmanager
    def keeping(self, *flags: str) -> Iterator[Path]:
        """A `keep` process; its log."""
        self._keepers += 1
        log = self.directory / f"keep-{self._keepers}.log"
        with _kept(self.kubeconfig, log, *FLAGS, *flags):
            yield log
