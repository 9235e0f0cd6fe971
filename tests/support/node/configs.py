"""The files that kubelet, containerd, its CNI plugins and kube-proxy are started with, and the image of a sandbox."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path
from typing import Any, Final

from support.node.namespaces import CGROUP
from support.node.network import PODS, Machine

PAUSE: Final = "kubevirt-coschedule.test/pause:1"
"""The image of a pod's sandbox."""

_CNI_PLUGINS: Final = "/usr/lib/cni"  # of Debian's package containernetworking-plugins
_CONTAINERD: Final = """\
version = 2
root = "{files}/root"
state = "{files}/state"
disabled_plugins = ["io.containerd.internal.v1.opt"] # it would make a folder in /opt
[grpc]
  address = "{files}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true # a machine without CAP_SYS_RESOURCE starts no container otherwise
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{files}/cni"
"""


def containerd(files: Path) -> str:
    """The configuration of containerd in TOML: all that it writes goes to `files`."""
    return _CONTAINERD.format(files=files, pause=PAUSE, plugins=_CNI_PLUGINS)


def cni(machine: Machine, files: Path) -> dict[str, Any]:
    """One bridge for the pods of a node."""
    addresses = {"type": "host-local", "dataDir": str(files / "addresses"), "ranges": [[{"subnet": machine.pods}]]}
    bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "hairpinMode": True}
    plugins = [{**bridge, "ipam": {**addresses, "routes": [{"dst": "0.0.0.0/0"}]}}]
    return {"cniVersion": "1.0.0", "name": machine.name, "plugins": plugins}


def kubelet(machine: Machine, files: Path, authority: Path) -> dict[str, Any]:
    """A kubelet's configuration: stock times, so that a Secret arrives as late as in production.

    Args:
        machine: the node.
        files: where its files go.
        authority: the file of the authority of those who may ask the kubelet.
    """
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{CGROUP}/{machine.name}",
        "containerRuntimeEndpoint": f"unix://{files}/containerd.sock",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "resolvConf": str(files / "resolv.conf"),
        "clusterDomain": "cluster.local",
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "podLogsDir": str(files / "pod-logs"),
        "volumePluginDir": str(files / "volume-plugins"),
    }


def kube_proxy(name: str, kubeconfig: Path) -> dict[str, Any]:
    """A kube-proxy's configuration: iptables, and none of the sysctls of the whole machine."""
    keep = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "hostnameOverride": name,
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": PODS,
        "detectLocalMode": "ClusterCIDR",
        "conntrack": keep,
        "metricsBindAddress": "127.0.0.1:10249",
    }


_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}  # uname's word, and Go's
_NOBODY: Final = "65535:65535"


def pause(program: Path, name: str, archive: Path) -> Path:
    """An image called `name` that runs one static program, as a docker-archive in the file `archive`."""
    layer = _tar({"pause": (program.read_bytes(), 0o755)})
    config = {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Entrypoint": ["/pause"], "User": _NOBODY},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{}],
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    files = {"config.json": json.dumps(config).encode(), "manifest.json": json.dumps(manifest).encode()}
    archive.write_bytes(_tar({"layer.tar": (layer, 0o644), **{key: (text, 0o644) for key, text in files.items()}}))
    return archive


def _tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
