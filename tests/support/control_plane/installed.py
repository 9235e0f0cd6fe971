"""The program installed on a control plane from `manifests/`, and its servers as processes of ours.

The test applies what a user applies, with three differences. The caBundle holds the test's own authority. The webhook
is off until a test turns it on. The Service and its clientConfig use a free port. The API server stores the Deployment,
but no controller acts on it. A server listens at the Service's clusterIP, to which kube-proxy would forward, and
reads the cluster as the ServiceAccount of the manifests.
"""

from __future__ import annotations

import base64
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import trustme
from support.control_plane.control_plane import ControlPlane
from support.control_plane.programs import free_port
from support.control_plane.rendering import kustomize, the, with_options
from support.drivers.serving import ROOT, Serving, issue, port_of, spawned, until_logged
from support.objects import builders
from support.waits import MAX_WAIT_SECONDS

NAME: Final = "kubevirt-coschedule"  # of all that the manifests make, and of their namespace
MANIFESTS: Final = ROOT / "manifests"
MAX_CALL_SECONDS: Final = 30  # the largest timeoutSeconds: for tests that count lost calls, and not slow ones

_POLL_SECONDS: Final = 0.05


class Installed:
    """The manifests on a control plane. `address` and `port` are where the API server calls the webhook."""

    def __init__(self, plane: ControlPlane, directory: Path) -> None:
        """Apply the manifests; files go to `directory`.

        Raises:
            NotBuilt: there is no kustomize.
        """
        self.plane, self.directory = plane, directory
        self.authority = trustme.CA()
        rendered = kustomize(MANIFESTS)
        for namespace in (builders.LONGHORN_NAMESPACE, builders.NAMESPACE):
            plane.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        self._configuration = next(each for each in rendered if each["kind"] == "MutatingWebhookConfiguration")
        plane.install(each for each in rendered if each is not self._configuration)
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME, "namespace": NAME}}
        self.address: str = plane.api.get(service)["spec"]["clusterIP"]
        self.port = free_port(self.address)
        plane.api.patch(service, {"spec": {"ports": [{"name": "https", "port": self.port, "targetPort": "https"}]}})
        self.kubeconfig = plane.kubeconfig(directory / f"{NAME}.kubeconfig", plane.service_account(NAME, NAME))
        self.certificate = issue(directory, f"{NAME}.{NAME}.svc", authority=self.authority)
        self._servers = 0

    def enable(self, *, component: str | None = None, **fields: Any) -> None:
        """Have the API server call the webhook; `fields` are other ones of each of the configuration's entries.

        With a component of manifests/ the entries are those of an install with it.
        """
        configuration = self._with(component) if component else self._configuration
        entries = [
            {**entry, "clientConfig": self._client(entry["clientConfig"]), **fields}
            for entry in configuration["webhooks"]
        ]
        self.plane.api.apply({**configuration, "webhooks": entries})

    def _with(self, component: str) -> Mapping[str, Any]:
        directory = Path(tempfile.mkdtemp(dir=self.directory))
        return the("MutatingWebhookConfiguration", kustomize(with_options(directory, component)))

    def _client(self, rendered: Mapping[str, Any]) -> dict[str, Any]:
        """How the API server finds and trusts us, from what the manifests say."""
        return {
            "service": {**rendered["service"], "port": self.port},
            "caBundle": base64.b64encode(self.authority.cert_pem.bytes()).decode(),
        }

    def disable(self) -> None:
        """Have the API server call nobody."""
        self.plane.api.delete(self._configuration, missing_ok=True)

    @contextmanager
    def serving(
        self, *flags: str | Path, listen: str | None = None, cluster: Sequence[str | Path] | None = None
    ) -> Iterator[Serving]:
        """A `serve` process, killed at the end. It listens where the API server calls, unless told otherwise.

        `cluster` tells how it reads the cluster; it is the ServiceAccount's kubeconfig where it is not told.
        """
        self._servers += 1
        log = self.directory / f"serve-{self._servers}.log"
        words = ["serve", *(cluster or ("--kubeconfig", self.kubeconfig)), *flags]
        words += ["--tls-cert-file", self.certificate.cert_file, "--tls-private-key-file", self.certificate.key_file]
        words += ["--listen", listen or f"{self.address}:{self.port}", "--health-listen", "127.0.0.1:0"]
        with spawned([sys.executable, "-m", "webhook", *map(str, words)], log) as process:
            line = until_logged(process, log, "serving")
            yield Serving(process, port_of(line["listen"]), port_of(line["health_listen"]), log)

    def until_called(self) -> None:
        """Wait until a pod that is created (and is not kept) carries a decision: the webhook is on, and answers."""
        probe = builders.virt_launcher_pod(namespace=builders.NAMESPACE, opt_in="required")
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        while (
            builders.DECISION not in self.plane.api.create(probe, owned=False, dryRun="All")["metadata"]["annotations"]
        ):
            assert time.monotonic() < deadline, f"no decision in {MAX_WAIT_SECONDS} s; {self.plane.api_server.tail()}"
            threading.Event().wait(_POLL_SECONDS)
