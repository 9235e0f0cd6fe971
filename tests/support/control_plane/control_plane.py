"""A real control plane for tests: etcd, kube-apiserver and kube-scheduler as processes of ours, on loopback only.

    with ControlPlane(directory) as plane:      # ready in about 5 s
        plane.api.create({...})                 # the admin's client: kube_api.Api
        plane.kubeconfig(file, user)            # for programs; a User is a name and a token
        plane.restart_apiserver()               # the same etcd, the same port
        plane.compact()                         # etcd forgets every revision but the last

A real cluster also has controllers and kubelets. Here nothing deletes the objects of a deleted namespace, binds a
claim, taints a node or runs a pod. Tests write what those programs would write (`cluster_state`). Admission plugins
that need such a controller are off (`control_plane_flags`).
Services have addresses of 127.200.0.0/16, so that the API server calls a webhook as in production, by
`clientConfig.service`. The process that listens on the Service's clusterIP and port is its endpoint. No other address
of the machine is used. Every process ends with the thread that started it: start a control plane from a long-lived
thread.
"""

from __future__ import annotations

import base64
import http.client
import json
import signal
import ssl
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple, Self

import trustme
import yaml
from controlplane import build
from controlplane.build import NEWEST, OLDEST, NotBuilt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from support.control_plane.control_plane_flags import (
    ALONE,
    HOST,
    SCHEDULER_FLAGS,
    WITHOUT_CONTROLLER,
    api_server_flags,
    etcd_flags,
    scheduler_config,
)
from support.control_plane.kube_api import Api, Object
from support.control_plane.kubevirt_kinds import VMS, crd
from support.control_plane.programs import Program, free_port
from support.waits import MAX_WAIT_SECONDS

__all__ = ["ALONE", "NEWEST", "OLDEST", "ControlPlane", "NotBuilt", "User"]

CRDS: Final = Path(__file__).parents[2] / "controlplane" / "crds.yaml"


_ADMIN: Final = "admin"
_SCHEDULER_USER: Final = "system:kube-scheduler"


class User(NamedTuple):
    """Who a kubeconfig is for."""

    name: str
    token: str


class ControlPlane:
    """etcd, kube-apiserver and, unless told otherwise, kube-scheduler, with Longhorn's CRDs. All files in `directory`.

    Raises, as it is made:
        NotBuilt: there are no programs; the message says what to do.
    """

    def __init__(
        self,
        directory: Path,
        *,
        version: str = NEWEST,
        scheduler: bool = True,
        longhorn: bool = True,
        api_flags: Sequence[str] = (),
        disabled: Sequence[str] = WITHOUT_CONTROLLER,
    ) -> None:
        programs = build.programs(version)
        if scheduler and "kube-scheduler" not in programs:
            raise NotBuilt(f"{build.ASSETS} has no kube-scheduler")
        self.directory, self._longhorn = directory, longhorn
        self.port, etcd_port, peer_port = (free_port(HOST) for _ in range(3))
        self.url = f"https://{HOST}:{self.port}"
        self._etcd_address = f"{HOST}:{etcd_port}"
        authority = trustme.CA()
        self.ca_pem = authority.cert_pem.bytes()
        self._trust = ssl.create_default_context(cadata=self.ca_pem.decode())
        self._write_credentials(authority)
        self._clients: list[Api] = []
        self.admin = User(_ADMIN, f"token-of-{_ADMIN}")
        self.api = self.as_user(self.admin)
        self.etcd = Program(programs["etcd"], etcd_flags(directory, etcd_port, peer_port), directory / "etcd.log")
        self.api_server = Program(
            programs["kube-apiserver"],
            [
                *api_server_flags(directory, self.port, f"http://{self._etcd_address}", disabled=disabled),
                *api_flags,
            ],
            directory / "kube-apiserver.log",
        )
        self.scheduler = None
        if scheduler:
            self.scheduler = Program(
                programs["kube-scheduler"],
                [f"--config={self._scheduler_config()}", *SCHEDULER_FLAGS],
                directory / "kube-scheduler.log",
            )

    def __enter__(self) -> Self:
        try:
            self.etcd.start()
            self.etcd.until_ready(f"http://{self._etcd_address}/readyz")
            self.start_api_server()
            if self.scheduler:
                self.scheduler.start()
            if self._longhorn:
                self.install_longhorn()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.forget_connections()
        for program in reversed(self.programs):
            program.stop()

    @property
    def programs(self) -> list[Program]:
        """What runs, or did: in the order of starting."""
        return [self.etcd, self.api_server, *([self.scheduler] if self.scheduler else [])]

    def install_longhorn(self) -> None:
        """Have Longhorn's CustomResourceDefinitions and KubeVirt's, where the control plane was made without."""
        self.install(yaml.load_all(CRDS.read_text(encoding="utf-8"), yaml.CSafeLoader))
        self.install_kubevirt()

    def install_kubevirt(self) -> None:
        """Have KubeVirt's CustomResourceDefinitions; a test that deletes them, and so all VMs, has them again."""
        self.install(map(crd, VMS))

    def start_api_server(self) -> None:
        """Start the API server, and wait until it is ready."""
        for client in self._clients:
            client.forget_connections()
        self.api_server.start()
        self.api_server.until_ready(f"{self.url}/readyz", self._trust)

    def stop_api_server(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Stop the API server: dead at once, or politely with SIGTERM."""
        self.api_server.stop(number)

    def restart_api_server(self) -> None:
        """Stop the API server and start it again: the same data, the same port."""
        self.stop_api_server()
        self.start_api_server()

    def compact(self) -> int:
        """Make etcd forget every revision but the last, which is returned; a watch from before then gets 410."""
        asked = self._etcd_call("/v3/kv/range", {"key": base64.b64encode(b"/").decode()})
        revision = int(asked["header"]["revision"])
        self._etcd_call("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    def as_user(self, user: User) -> Api:
        """A client of a user's, closed at the end of the control plane."""
        self._clients.append(Api(self.url, user.token, self._trust))
        return self._clients[-1]

    def service_account(self, namespace: str, name: str) -> User:
        """A service account that is there, with a token of its own."""
        return User(f"system:serviceaccount:{namespace}:{name}", self.api.request_token(namespace, name))

    def kubeconfig(self, file: Path, user: User, *, server: str | None = None) -> Path:
        """A kubeconfig for this user; `server` is another way to the API server, such as a proxy on 127.0.0.1."""
        ca = base64.b64encode(self.ca_pem).decode()
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tests",
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": user.name}}],
            "clusters": [
                {"name": "tests", "cluster": {"server": server or self.url, "certificate-authority-data": ca}}
            ],
            "users": [{"name": user.name, "user": {"token": user.token}}],
        }
        file.write_text(json.dumps(content))
        return file

    def install(self, objects: Iterable[Object]) -> None:
        """Apply some objects in their order, and wait until the CustomResourceDefinitions among them are served."""
        for wanted in objects:
            if wanted["kind"] == "CustomResourceDefinition":
                self.api.wait_for(wanted, _is_kept, what="gone")  # one that another module has just deleted
            self.api.apply(wanted)
            if wanted["kind"] == "CustomResourceDefinition":
                self.api.wait_for(wanted, _is_established, what="Established")

    def _write_credentials(self, authority: trustme.CA) -> None:
        issued = authority.issue_cert(HOST)
        key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        (self.directory / "kube-apiserver.crt").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        (self.directory / "kube-apiserver.key").write_bytes(issued.private_key_pem.bytes())
        (self.directory / "service-accounts.key").write_bytes(key)
        (self.directory / "tokens.csv").write_text(
            f'token-of-{_ADMIN},{_ADMIN},{_ADMIN},"system:masters"\n'
            f"token-of-{_SCHEDULER_USER},{_SCHEDULER_USER},{_SCHEDULER_USER}\n"
        )

    def _scheduler_config(self) -> Path:
        user = User(_SCHEDULER_USER, f"token-of-{_SCHEDULER_USER}")
        file = self.directory / "kube-scheduler.yaml"
        kubeconfig = self.kubeconfig(self.directory / "kube-scheduler.kubeconfig", user)
        file.write_text(json.dumps(scheduler_config(kubeconfig)))
        return file

    def _etcd_call(self, path: str, body: Object) -> Object:
        with closing(http.client.HTTPConnection(self._etcd_address, timeout=MAX_WAIT_SECONDS)) as connection:
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            text = response.read()
        assert response.status == http.client.OK, text
        answer: Object = json.loads(text)
        return answer


def _is_kept(crd: Object | None) -> bool:
    return crd is None or "deletionTimestamp" not in crd["metadata"]


def _is_established(crd: Object | None) -> bool:
    conditions = (crd or {}).get("status", {}).get("conditions") or []
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)
