"""A control plane with KubeVirt: real virt-controller, virt-api and kube-controller-manager, with KubeVirt's own kinds.

    with KubeVirtPlane(directory) as plane:     # ready in about 10 s
        plane.api.create({...})                 # a VirtualMachine: virt-api fills it in, virt-controller starts it

Played by `nodes`: kubelets, virt-handler, CSI and Longhorn's manager. Definitions and rights are those that
virt-operator of this version installs. Each program has the service account of its own.
"""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import trustme
from controlplane import build
from support.control_plane.control_plane import ControlPlane
from support.control_plane.control_plane_flags import HOST, SERVICE_ACCOUNT, WITHOUT_CONTROLLER
from support.control_plane.kube_api import Object
from support.control_plane.programs import Program, free_port
from support.kubevirt import cdi
from support.scenarios.admitting import until
from support.tested_versions import required

NEWEST: Final = "1.8"
OLDEST: Final = "1.6"
NAMESPACE: Final = "kubevirt"
GATES: Final[Mapping[str, Sequence[str]]] = {NEWEST: ("MigrationPriorityQueue",), OLDEST: ()}
"""Of 1.8 the gate that 1.9 has by default."""
ACCOUNTS: Final = {"virt-controller": "kubevirt-controller", "virt-api": "kubevirt-apiserver"}
HANDLER: Final = "kubevirt-handler"
_API: Final = "virt-api"
_CONTROLLERS: Final = ("garbage-collector-controller", "disruption-controller", "serviceaccount-controller")
_LEASE: Final = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "virt-controller", "namespace": NAMESPACE},
}


class KubeVirtPlane(ControlPlane):
    """As ControlPlane, with KubeVirt of a minor version.

    `configuration` are fields of the KubeVirt resource's spec.configuration, and `has_cdi` brings kinds of CDI.
    As in a cluster, pods have the token of their service account: KubeVirt counts the volumes of attachment pods.
    """

    def __init__(
        self,
        directory: Path,
        *,
        kubevirt: str = NEWEST,
        configuration: Object | None = None,
        has_cdi: bool = False,
        **parameters: Any,
    ) -> None:
        super().__init__(
            directory, disabled=[each for each in WITHOUT_CONTROLLER if each != SERVICE_ACCOUNT], **parameters
        )
        self.kubevirt = kubevirt
        self._definitions = list(_definitions(kubevirt))
        self.has_cdi, self._configuration = has_cdi, configuration or {}
        self._started: list[Program] = []

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self._start_controllers()
            self._start_virt_controller()
            self._start_virt_api()
            self.api.wait_for(_LEASE, lambda lease: bool(lease and lease["spec"].get("holderIdentity")), what="held")
        except BaseException as error:
            error.add_note("\n".join(f"{each.name}: {each.tail()}" for each in self._started if each.log.exists()))
            self.__exit__()
            raise
        return self

    @property
    def programs(self) -> list[Program]:
        """What runs, or did: in the order of starting."""
        return [*super().programs, *self._started]

    def install_kubevirt(self) -> None:
        """Have KubeVirt's definitions and rights, and the KubeVirt resource, as virt-operator leaves it."""
        definitions = [*(cdi.definitions() if self.has_cdi else ())]
        definitions += [each for each in self._definitions if not each["kind"].endswith("WebhookConfiguration")]
        for each in (namespace_named(NAMESPACE), *definitions):
            self.api.apply(each)
        self.install([*(each for each in definitions if each["kind"] == "CustomResourceDefinition"), self._resource()])
        version = f"v{_version(self.kubevirt)}"
        status = {"phase": "Deployed", "observedKubeVirtVersion": version, "defaultArchitecture": "amd64"}
        status |= {"observedDeploymentID": "tests", "targetDeploymentID": "tests"}
        self.api.patch(self._resource(), {"status": status}, subresource="status")

    def _resource(self) -> Object:
        gates = {"developerConfiguration": {"featureGates": [*GATES[self.kubevirt]]}}
        return {
            "apiVersion": "kubevirt.io/v1",
            "kind": "KubeVirt",
            "metadata": {"name": "kubevirt", "namespace": NAMESPACE},
            "spec": {"configuration": {**gates, **self._configuration}},
        }

    def _start_controllers(self) -> None:
        kubeconfig = self.kubeconfig(self.directory / "controllers.kubeconfig", self.admin)
        self._start(
            build.controller_manager(),
            f"--kubeconfig={kubeconfig}",
            f"--controllers={','.join(_CONTROLLERS)}",
            "--authentication-skip-lookup",
            "--secure-port=0",
            "--leader-elect=false",
        )

    def _start_virt_controller(self) -> None:
        certificate, key = self._certificate(HOST, "virt-controller")
        self._start_component(
            "virt-controller",
            HOST,
            free_port(HOST),
            f"--prom-cert-file={certificate}",
            f"--prom-key-file={key}",
            "--launcher-image=registry.example/virt-launcher",
            "--exporter-image=registry.example/virt-exportserver",
        )

    def _start_virt_api(self) -> None:
        """Start it where its Service is, then have the API server call it."""
        authentication = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
            "data": {"requestheader-client-ca-file": self.ca_pem.decode(), "requestheader-allowed-names": "[]"},
        }
        self.install([namespace_named("kube-system"), authentication])
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": _API, "namespace": NAMESPACE}}
        address = self.api.get(service)["spec"]["clusterIP"]
        port = free_port(address)
        self.api.patch(service, {"spec": {"ports": [{"port": port, "targetPort": port}]}})
        certificate, key = self._certificate(f"{_API}.{NAMESPACE}.svc", _API)
        pair = (("cert", certificate), ("key", key))
        files = [f"--{prefix}-{what}-file={file}" for prefix in ("tls", "handler") for what, file in pair]
        program = self._start_component(_API, address, port, *files)
        until(lambda: _listens(address, port), program.tail)
        self.install(self._called(port))

    def _called(self, port: int) -> Iterator[Object]:
        """Webhook configurations of virt-api, with what the API server needs to call it."""
        bundle = base64.b64encode(self._authority.cert_pem.bytes()).decode()
        for each in self._definitions:
            if each["kind"].endswith("WebhookConfiguration"):
                hooks = [hook for hook in each["webhooks"] if hook["clientConfig"]["service"]["name"] == _API]
                for hook in hooks:
                    hook["clientConfig"]["service"]["port"] = port
                    hook["clientConfig"]["caBundle"] = bundle
                if hooks:
                    yield {**each, "webhooks": hooks}

    def _start_component(self, name: str, address: str, port: int, *flags: str) -> Program:
        user = self.service_account(NAMESPACE, ACCOUNTS[name])
        kubeconfig = self.kubeconfig(self.directory / f"{name}.kubeconfig", user)
        path = build.kubevirt(name, self.kubevirt)
        return self._start(path, f"--kubeconfig={kubeconfig}", f"--listen={address}", f"--port={port}", *flags)

    def _start(self, path: Path, *flags: str) -> Program:
        program = Program(path, flags, self.directory / f"{path.name}.log")
        self._started.append(program)
        program.start()
        return program

    def _write_credentials(self, authority: trustme.CA) -> None:
        super()._write_credentials(authority)
        self._authority = authority

    def _certificate(self, name: str, stem: str) -> tuple[Path, Path]:
        """In a folder of its own: KubeVirt's programs read it again, and log that, when a file beside it changes."""
        issued, folder = self._authority.issue_cert(name), self.directory / f"{stem}-certificate"
        folder.mkdir()
        certificate, key = folder / "tls.crt", folder / "tls.key"
        certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        key.write_bytes(issued.private_key_pem.bytes())
        return certificate, key


def _definitions(version: str) -> Iterator[Object]:
    for line in build.kubevirt("kubevirt.jsonl", version).read_text(encoding="utf-8").splitlines():
        each = json.loads(line)
        if each["kind"] != "APIService":
            yield each


def _version(kubevirt: str) -> str:
    """The whole version, of the go.mod that pins it."""
    return required(f"kubevirt-{kubevirt}", "kubevirt.io/kubevirt")


def namespace_named(name: str) -> Object:
    """A Namespace without labels."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True
