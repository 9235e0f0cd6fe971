"""The versions of other programs that the tests run, or whose objects they take, read from the files that pin them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml
from controlplane.build import HERE, KUBERNETES, NEWEST, OLDEST
from controlplane.build import KUBEVIRT as KUBEVIRT_UNITS
from support.control_plane.rendering import ROOT

BUILDERS: Final = Path(__file__).parent / "objects"
MINORS: Final = tuple(f"1.{minor}" for minor in range(30, 38))
"""Of schemas: from the first with matchConditions in its stable API on, to the last that kubernetes-validate has."""


def required(unit: str, module: str) -> str:
    """The version of a module in the go.mod of a unit, without the v."""
    return _found(HERE / unit / "go.mod", rf"{re.escape(module)} v([\d.]+)")


def _found(file: Path, pattern: str) -> str:
    match = re.search(pattern, file.read_text(encoding="utf-8"))
    assert match, f"{file.name} has no {pattern}"
    return match[1]


def _pythons() -> str:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    return " and ".join(workflow["jobs"]["test"]["strategy"]["matrix"]["python"])


def _prometheus() -> str:
    """v0.314.0 is the Go module of Prometheus 3.14.0 (the tags of github.com/prometheus/prometheus)."""
    _, minor, patch = required("monitoring", "github.com/prometheus/prometheus").split(".")
    return f"{minor[0]}.{int(minor[1:])}.{patch}"


KUBEVIRT: Final = _found(BUILDERS / "builders.py", r"virt-launcher:v([\d.]+)")
LONGHORN: Final = _found(BUILDERS / "builders_longhorn.py", r"longhorn-share-manager:v([\d.]+)")
SERVERS: Final = {minor: KUBERNETES[minor].version or "" for minor in (NEWEST, OLDEST)}

TESTED: Final[Mapping[str, tuple[str, str]]] = {
    "kube-apiserver, kube-scheduler": (
        " and ".join(SERVERS.values()),
        "both real. The tests take the newer one. The soak runs the corpus of decisions on both",
    ),
    "kube-controller-manager": (
        SERVERS[NEWEST],
        "real, in the tests with KubeVirt's programs (its garbage collector and its disruption controller)",
    ),
    "kubelet, kube-proxy": (
        required("node", "k8s.io/kubernetes"),
        "real, on two nodes with containerd and runc of Debian",
    ),
    "schemas of Kubernetes": (
        f"{MINORS[0]} to {MINORS[-1]}",
        "each object that is installed, with each option, is valid in each minor version",
    ),
    "etcd": (required("etcd", "go.etcd.io/etcd/server/v3"), "real, below each API server"),
    "kubectl": (KUBERNETES[NEWEST].version or "", "real: install, upgrade and removal, with its kustomize"),
    "Helm": (
        f"{required('helm', 'helm.sh/helm/v3')}, {required('helm-4', 'helm.sh/helm/v4')}",
        "real: install, upgrade, rollback, uninstall",
    ),
    "helm-unittest": (
        required("helm-unittest", "github.com/helm-unittest/helm-unittest"),
        f"real: the suites of the chart, with the code of Helm {required('helm-unittest', 'helm.sh/helm/v3')}",
    ),
    "KubeVirt": (
        KUBEVIRT,
        "pods of VMs as KubeVirt's own code renders them. Most tests play virt-controller",
    ),
    "virt-controller, virt-api": (
        " and ".join(required(unit.name, "kubevirt.io/kubevirt") for unit in KUBEVIRT_UNITS.values()),
        "both real. The tests play virt-handler",
    ),
    "Longhorn": (
        LONGHORN,
        "objects as its CRDs define them. The tests play its managers. Read, not tried: 1.13 of 14 August 2026",
    ),
    "cert-manager": (
        required("cert-manager", "github.com/cert-manager/cert-manager"),
        "its CRDs on a real API server. The tests play its controller",
    ),
    "Prometheus": (_prometheus(), "real, by promtool: rules, alerts, and the syntax of each query of the dashboard"),
    "prometheus-operator": (
        required("monitoring", "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring"),
        "its CRDs on a real API server",
    ),
    "descheduler": ("0.36.0", "real, once ([what was seen](../comparison.md#what-was-seen))"),
    "Karpenter": ("1.15.0", "real, with its kwok provider, once ([what was seen](../comparison.md#what-was-seen))"),
    "Python": (
        _pythons(),
        "3.11 runs all tests. 3.13, which the image has, runs those of the image and, by hand, all others",
    ),
}
"""What was tested: its versions, and how."""


def table() -> str:
    """The table of docs/reference/compatibility.md."""
    rows = [f"| {name} | {version} | {how} |" for name, (version, how) in TESTED.items()]
    return "\n".join(["| | Version | How it is tested |", "|---|---|---|", *rows])
