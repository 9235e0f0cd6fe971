"""The whole install as a cluster runs it: `certs keep` and two servers, each as its own service account.

The test applies what a user applies, and gives no certificate. Two things differ. The Service and its clientConfig have
a free port. The API server waits for an answer for as long as it can, because a slow machine is no lost call. The
programs run with the arguments that their Deployments have when they start. The test
plays the controllers, the kubelets and kube-proxy. It starts pods after the apply, mounts the Secret for each server
(`Kubelets`), and forwards the Service's address to the servers that listen (`proxy`).
"""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from support.control_plane.certs_process import SECRET
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import MAX_CALL_SECONDS
from support.control_plane.kube_api import Api, Object
from support.control_plane.kubectl import end_namespace
from support.control_plane.mounted import Mounted
from support.control_plane.programs import free_port
from support.control_plane.rendering import CERTS, MANIFESTS, NAME, kustomize, the
from support.drivers.serving import Serving, port_of, spawned, until_logged
from support.drivers.serving import cluster as cluster_with_a_claim
from support.fakes.proxy import Address, Proxy
from support.repeated_step import RepeatedStep

SERVER_NAME: Final = f"{NAME}.{NAME}.svc"  # what the API server asks for

_HOSTS: Final = ("127.0.0.2", "127.0.0.3")  # of the servers
_ANY_PORT: Final = "127.0.0.1:0"
_FILES: Final = ("tls.crt", "tls.key")  # as the Deployment names them; while one is missing a pod waits for both
_LOOK_SECONDS: Final = 0.1


@contextmanager
def without_us(directory: Path) -> Iterator[ControlPlane]:
    """A control plane with Longhorn and a claim for a pin, and with nothing of ours."""
    with ControlPlane(directory, scheduler=False) as plane, ClusterState(plane.api) as cluster:
        cluster.become(cluster_with_a_claim())
        yield plane


class Running(NamedTuple):
    """A program that was started, and its log."""

    process: subprocess.Popen[bytes]
    log: Path

    def until_logged(self, message: str) -> dict[str, Any]:
        """Wait for a log line with this message; fails where the process ends without one."""
        return until_logged(self.process, self.log, message)

    def until_serving(self) -> Serving:
        """Wait until it listens, where it is a `serve`."""
        line = self.until_logged("serving")
        return Serving(self.process, port_of(line["listen"]), port_of(line["health_listen"]), self.log)

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def said(self, *messages: str) -> list[dict[str, Any]]:
        """Its whole lines with one of these messages, in their order."""
        whole = self.log.read_text().rpartition("\n")[0].splitlines()  # a killed process can leave half a line
        return [line for line in map(json.loads, whole) if line["message"] in messages]


class _Written(NamedTuple):
    at: float
    version: str
    payload: Mapping[str, bytes]


class Kubelets(RepeatedStep):
    """A context manager: a volume for each of `lags`, which shows what the Secret held so many seconds ago."""

    def __init__(self, api: Api, secret: Object, directory: Path, lags: Sequence[float]) -> None:
        super().__init__(_LOOK_SECONDS)
        self._api = Api(api.url, api.token, api._trust)  # its connection is ours alone
        self._secret, self._lags = secret, lags
        self.volumes = [Mounted(directory / f"volume-{index}") for index in range(len(lags))]
        self._shown = [""] * len(lags)
        self._written: list[_Written] = []

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._api.forget_connections()

    def step(self) -> None:
        """Read the Secret, and write into each volume what the Secret held `lag` seconds ago."""
        written = self._written
        found = self._api.find(self._secret)
        data = (found or {}).get("data") or {}
        if found and set(_FILES) <= data.keys():
            payload = {name: base64.b64decode(data[name]) for name in _FILES}
            if not written or written[-1].payload != payload:
                written.append(_Written(time.monotonic(), found["metadata"]["resourceVersion"], payload))
        for index, lag in enumerate(self._lags):
            due = [each for each in written if each.at + lag <= time.monotonic()]
            if due and due[-1].version != self._shown[index]:
                self.volumes[index].put(due[-1].payload)
                self._shown[index] = due[-1].version


class Unattended:
    """A context manager: the manifests are applied as it begins; all programs and objects are gone when it ends.

    `lags`: the seconds by which each server's kubelet is late. Nothing runs until `start_servers` and `start_keeper`.
    """

    def __init__(
        self,
        plane: ControlPlane,
        directory: Path,
        lags: Sequence[float] = (0.0, 0.0),
    ) -> None:
        self.plane, self.directory = plane, directory
        self.keepers: list[Running] = []
        self.servers: list[Running] = []
        self.serving: list[Serving] = []
        self.proxy: Proxy
        self._lags = lags
        self._started = 0
        self._files = ExitStack()
        self._applied = _for_tests(kustomize(MANIFESTS), _free_service_port())

    def __enter__(self) -> Self:
        try:
            self.plane.install(self._applied)
            self._accounts = {
                name: self.plane.kubeconfig(
                    self.directory / f"{name}.kubeconfig", self.plane.service_account(NAME, name)
                )
                for name in (NAME, CERTS)
            }
            self.kubelets = Kubelets(self.plane.api, SECRET, self.directory, self._lags)
            self._files.enter_context(self.kubelets)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()
        for applied in reversed(self._applied):
            self.plane.api.delete(applied, missing_ok=True)
        end_namespace(self.plane.api, NAME)

    def start_keeper(self, *flags: str) -> Running:
        """A `certs keep` of the Deployment's arguments and these, which is not waited for."""
        log = self.directory / f"keep-{len(self.keepers)}.log"
        self.keepers.append(self._start("certs", CERTS, log, "--listen", _ANY_PORT, *flags))
        return self.keepers[-1]

    def start_servers(self, *flags: str) -> None:
        """A `serve` of these flags for each kubelet; they are not waited for."""
        self.servers += [self.start_server(index, *flags) for index in range(len(self.kubelets.volumes))]

    def start_server(self, index: int, *flags: str) -> Running:
        """A `serve` of the Deployment's arguments and these, beside this kubelet's; it is not waited for."""
        self._started += 1
        files, log = self.kubelets.volumes[index].files, self.directory / f"serve-{self._started}.log"
        mounted = ("--tls-cert-file", files.cert_file, "--tls-private-key-file", files.key_file)
        ports = ("--listen", f"{_HOSTS[index]}:0", "--health-listen", _ANY_PORT)
        return self._start("webhook", NAME, log, *mounted, *ports, *flags)

    def until_serving(self) -> None:
        """Wait until the servers listen, and let the Service's address lead to them."""
        self.serving += [server.until_serving() for server in self.servers]
        service = self.plane.api.get(the("Service", self._applied))  # type: ignore[arg-type] # it only reads
        (port,) = service["spec"]["ports"]
        self.proxy = Proxy(*self.endpoints, host=service["spec"]["clusterIP"], port=port["port"])
        self._files.enter_context(self.proxy)

    @property
    def endpoints(self) -> list[Address]:
        """Where the servers listen."""
        return [Address(host, serving.port) for host, serving in zip(_HOSTS, self.serving, strict=True)]

    def _start(self, package: str, name: str, log: Path, *flags: str | Path) -> Running:
        """A program as the Deployment of this name has it now, and with the rights of its account; later flags win."""
        named = {"name": name, "namespace": NAME}
        deployment = self.plane.api.get({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": named})
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        words = [*container["args"], "--kubeconfig", self._accounts[name], *flags]
        return Running(self._files.enter_context(spawned(self.command("-m", package, *map(str, words)), log)), log)

    def command(self, *words: str) -> list[str]:
        """How Python is run with these words: as the tests' own."""
        return [sys.executable, *words]


def _free_service_port() -> int:
    """A port that no process has on any address: a Service has an address that is not known before."""
    return free_port("127.200.255.254")


def _for_tests(rendered: list[Object], port: int) -> list[Object]:
    """The objects, changed so that the Service and its clientConfig have this port, and a call has MAX_CALL_SECONDS."""
    (service_port,) = the("Service", rendered)["spec"]["ports"]
    service_port["port"] = port
    for entry in the("MutatingWebhookConfiguration", rendered)["webhooks"]:
        entry["clientConfig"]["service"]["port"] = port
        entry["timeoutSeconds"] = MAX_CALL_SECONDS
    return rendered
