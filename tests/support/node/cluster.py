"""A control plane as `control_plane` has it, with its controllers and with nodes: kubelet, containerd, kube-proxy.

Only for namespaces that are prepared (`namespaces`): the end of these is the end of what a node has started. The
control plane's machine has a kube-proxy, too, so that the API server calls the webhook by its Service.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

import trustme
from controlplane import build
from support.control_plane.control_plane import ControlPlane, User
from support.control_plane.control_plane_flags import HOST as LOOPBACK
from support.control_plane.control_plane_flags import api_server_flags
from support.control_plane.kube_api import Object
from support.control_plane.programs import Program
from support.node import configs, network
from support.node.namespaces import told
from support.node.network import MACHINES, Machine
from support.scenarios.admitting import until

_CONTROL_PLANE: Final = "control-plane"  # what its kube-proxy calls the machine
_PROXY: Final = "system:kube-proxy"


class Node:
    """A node: containerd with images, kubelet and kube-proxy, in the machine's network namespace."""

    def __init__(self, cluster: NodeCluster, machine: Machine) -> None:
        self.machine = machine
        self._cluster = cluster
        self._files = cluster.directory / machine.name
        for folder in ("cni", "pod-logs", "volume-plugins", "pki"):
            (self._files / folder).mkdir(parents=True)
        self.containerd = self._program(
            "containerd", "-c", self._file("containerd.toml", configs.containerd(self._files))
        )
        self._file("cni/pods.conflist", json.dumps(configs.cni(machine, self._files)))
        self._file("resolv.conf", f"nameserver {LOOPBACK}\n")
        config = configs.kubelet(machine, self._files, cluster.directory / "ca.crt")
        self.kubelet = self._program(
            build.node("kubelet"),
            f"--config={self._file('kubelet.json', json.dumps(config))}",
            f"--kubeconfig={cluster.reachable_kubeconfig(_user_of(machine))}",
            f"--root-dir={self._files / 'kubelet'}",
            f"--cert-dir={self._files / 'pki'}",
            f"--hostname-override={machine.name}",
            f"--node-ip={machine.address}",
            f"--node-labels=kubevirt.io/schedulable=true,topology.kubernetes.io/zone=zone-{machine.number}",
            "--v=2",
        )
        self.proxy = cluster.proxy(machine.name, machine.enter())

    @property
    def programs(self) -> list[Program]:
        """What runs, in the order of starting."""
        return [self.containerd, self.kubelet, self.proxy]

    def start(self) -> None:
        """Start all, with the images that pods may need; the node is Ready some seconds later."""
        self.containerd.start()
        until((self._files / "containerd.sock").exists, self.containerd.tail)
        for archive in self._cluster.archives:
            told("ctr", "-a", f"{self._files}/containerd.sock", "-n", "k8s.io", "images", "import", str(archive))
        self.kubelet.start()
        self.proxy.start()

    def _file(self, name: str, text: str) -> Path:
        file = self._files / name
        file.write_text(text)
        return file

    def _program(self, path: str | Path, *flags: str | Path) -> Program:
        log = self._cluster.directory / f"{Path(path).name}-{self.machine.name}.log"
        return in_namespace(self.machine.enter(), path, [str(flag) for flag in flags], log)


class NodeCluster(ControlPlane):
    """A context manager: a control plane with controllers, and a node for each of MACHINES, all Ready.

    Raises, as it is made:
        NotBuilt: there are no programs; the message says what to do.
    """

    def __init__(self, directory: Path, archives: Sequence[Path]) -> None:
        self._users = [(_PROXY, ""), *((_user_of(machine).name, "system:nodes") for machine in MACHINES)]
        super().__init__(directory)
        pause = configs.pause(build.node("pause"), configs.PAUSE, directory / "pause.tar")
        self.archives = [pause, *archives]
        self.api_server = Program(
            build.programs()["kube-apiserver"], self._api_flags(), directory / "kube-apiserver.log"
        )
        self._controllers = Program(
            build.controller_manager(),
            [
                f"--kubeconfig={self.kubeconfig(directory / 'controllers.kubeconfig', self.admin)}",
                "--authentication-skip-lookup",
                "--secure-port=0",
                "--leader-elect=false",
                f"--root-ca-file={directory / 'ca.crt'}",
                f"--service-account-private-key-file={directory / 'service-accounts.key'}",
            ],
            directory / "kube-controller-manager.log",
        )
        self._proxy = self.proxy(_CONTROL_PLANE, [])
        self.nodes = [Node(self, machine) for machine in MACHINES]

    def __enter__(self) -> Self:
        network.connect([node.machine for node in self.nodes])
        super().__enter__()
        try:
            self._controllers.start()
            self._proxy.start()
            for node in self.nodes:
                node.start()
            for node in self.nodes:
                self.until_node(node.machine.name, ready="True")
        except BaseException as error:
            error.add_note(
                "\n".join(f"{program.name}: {program.tail()}" for program in self.programs if program.log.exists())
            )
            self.__exit__()
            raise
        return self

    @property
    def programs(self) -> list[Program]:
        """What runs, or did: in the order of starting."""
        of_nodes = [program for node in self.nodes for program in node.programs]
        return [*super().programs, self._controllers, self._proxy, *of_nodes]

    def until_node(self, name: str, *, ready: str) -> Object:
        """The node, as soon as the status of its condition Ready is this."""
        target = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        found = self.api.wait_for(target, lambda node: _readiness(node) == ready, what=f"Ready={ready}")
        assert found is not None
        return found

    def reachable_kubeconfig(self, user: User) -> Path:
        """A kubeconfig for a program on a node."""
        file = self.directory / f"{user.name.replace(':', '-')}.kubeconfig"
        return self.kubeconfig(file, user, server=f"https://{network.HOST}:{self.port}")

    def proxy(self, name: str, enter: list[str]) -> Program:
        """A kube-proxy for a machine of this name; `enter` is the command that enters its network namespace."""
        config = self.directory / f"kube-proxy-{name}.json"
        kubeconfig = self.reachable_kubeconfig(User(_PROXY, f"token-of-{_PROXY}"))
        config.write_text(json.dumps(configs.kube_proxy(name, kubeconfig)))
        log = self.directory / f"kube-proxy-{name}.log"
        return in_namespace(enter, build.node("kube-proxy"), [f"--config={config}"], log)

    def _write_credentials(self, authority: trustme.CA) -> None:
        super()._write_credentials(authority)
        names = (LOOPBACK, network.HOST, network.API_SERVICE, "kubernetes.default.svc")
        calling = authority.issue_cert(
            "kube-apiserver", organization_name="system:masters", common_name="kube-apiserver"
        )
        for leaf, name in ((authority.issue_cert(*names), "kube-apiserver"), (calling, "kubelet-client")):
            (self.directory / f"{name}.crt").write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
            (self.directory / f"{name}.key").write_bytes(leaf.private_key_pem.bytes())
        (self.directory / "ca.crt").write_bytes(authority.cert_pem.bytes())
        with (self.directory / "tokens.csv").open("a") as tokens:
            tokens.writelines(f'token-of-{name},{name},{name},"{group}"\n' for name, group in self._users)

    def _api_flags(self) -> list[str]:
        stock = api_server_flags(self.directory, self.port, f"http://{self._etcd_address}")
        flags = dict(flag.split("=", 1) for flag in stock)
        del flags["--disable-admission-plugins"]  # the controllers that these need are there
        del flags["--endpoint-reconciler-type"]  # the API server's address is not loopback
        flags |= {
            "--bind-address": "0.0.0.0",  # noqa: S104 - of the network namespace
            "--advertise-address": network.HOST,
            "--authorization-mode": "Node,RBAC",
            "--enable-admission-plugins": "NodeRestriction",
            "--service-cluster-ip-range": network.SERVICES,
            "--client-ca-file": str(self.directory / "ca.crt"),
            "--kubelet-client-certificate": str(self.directory / "kubelet-client.crt"),
            "--kubelet-client-key": str(self.directory / "kubelet-client.key"),
            "--kubelet-preferred-address-types": "InternalIP",
        }
        return [f"{name}={value}" for name, value in flags.items()]


def in_namespace(enter: Sequence[str], path: str | Path, flags: Sequence[str], log: Path) -> Program:
    """A program with these flags, run by the command `enter`, or as it is where that is empty."""
    words = [*enter, str(path), *flags]
    program = Program(Path(shutil.which(words[0]) or words[0]), words[1:], log)
    program.name = log.stem
    return program


def _user_of(machine: Machine) -> User:
    name = f"system:node:{machine.name}"
    return User(name, f"token-of-{name}")


def _readiness(node: Object | None) -> str:
    conditions = (node or {}).get("status", {}).get("conditions", [])
    return next((each["status"] for each in conditions if each["type"] == "Ready"), "")
