"""How etcd, kube-apiserver and kube-scheduler are started: `control_plane` says why so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

HOST: Final = "127.0.0.1"
ALONE: Final = "pod-and-nodes-alone"  # a scheduler's name

_SERVICES: Final = "127.200.0.0/16"
SERVICE_ACCOUNT: Final = "ServiceAccount"
WITHOUT_CONTROLLER: Final = (SERVICE_ACCOUNT, "StorageObjectInUseProtection", "TaintNodesByCondition")
"""Admission plugins that are of no use, or refuse pods, while no controller makes what they need."""
_VOLUMES_AND_OTHER_PODS: Final = (
    "AzureDiskLimits",  # of Kubernetes 1.30, as the other two limits of one cloud; 1.37 has none
    "DynamicResources",
    "EBSLimits",
    "GCEPDLimits",
    "InterPodAffinity",
    "NodeVolumeLimits",
    "PodTopologySpread",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
)


def etcd_flags(directory: Path, port: int, peer_port: int) -> list[str]:
    """One member, which loses its data if the machine stops, because it does not sync to disk."""
    client, peer = f"http://{HOST}:{port}", f"http://{HOST}:{peer_port}"
    return [
        f"--data-dir={directory / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--log-level=warn",
    ]


def api_server_flags(
    files: Path, port: int, etcd_url: str, *, disabled: Sequence[str] = WITHOUT_CONTROLLER
) -> list[str]:
    """`files` has the certificate, the service accounts' key, the users' tokens; `disabled` are admission plugins."""
    return [
        f"--etcd-servers={etcd_url}",
        f"--bind-address={HOST}",
        f"--advertise-address={HOST}",
        f"--secure-port={port}",
        f"--tls-cert-file={files / 'kube-apiserver.crt'}",
        f"--tls-private-key-file={files / 'kube-apiserver.key'}",
        f"--token-auth-file={files / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        f"--disable-admission-plugins={','.join(disabled)}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files / 'service-accounts.key'}",
        f"--service-account-signing-key-file={files / 'service-accounts.key'}",
        f"--service-cluster-ip-range={_SERVICES}",
        "--endpoint-reconciler-type=none",  # an EndpointSlice takes no loopback address
        "--allow-privileged=true",
        "--shutdown-delay-duration=0s",
        "--shutdown-watch-termination-grace-period=1s",  # without it a SIGTERM waits a minute for those who watch
    ]


SCHEDULER_FLAGS: Final = ("--secure-port=0", "--authentication-skip-lookup")


def scheduler_config(kubeconfig: Path) -> Mapping[str, Any]:
    """Beside the stock profile one that places a pod by its own rules and the nodes' alone.

    That is how the corpus tells `binds`: by affinity, selector, taints and cordon, not by volumes and other pods.
    """
    off = {"multiPoint": {"disabled": [{"name": name} for name in _VOLUMES_AND_OTHER_PODS]}}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": ALONE, "plugins": off}],
    }
