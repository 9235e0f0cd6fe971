"""Karpenter in its own process with its kwok provider: whether it makes a node for a VM that fits nowhere.

The webhook writes a hard pin or a short list only while there is room. So kube-scheduler is stopped, the pod is
created, all nodes are filled, and kube-scheduler is started again: it then marks the pod as unschedulable, which is
what Karpenter looks for. Nobody runs kwok's own controller here: this module reports Karpenter's nodes as Ready.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from coexistence.cluster import MANY, Cluster, nodes, within
from coexistence.forms import HOSTNAME, MEMORY_GIB, NOTHING, PIN, PREFERENCE, SEVERAL, SHORTLIST, TARGET, Form, filler
from coexistence.rows import Row, pinned
from controlplane import build
from support.control_plane.kube_api import Object
from support.control_plane.ports import free_port
from support.control_plane.programs import Program
from support.control_plane.vm_starts import NODES
from support.waits import MAX_WAIT_SECONDS

MADE: Final = "a NodeClaim, and the VM starts on the new node"
CLAIMED: Final = "a NodeClaim, and the VM stays pending"
UNREAD: Final = "no NodeClaim: Karpenter does not read matchFields"
REFUSED: Final = "no NodeClaim: Karpenter refuses a required kubernetes.io/hostname"
UNEXPLAINED: Final = "no NodeClaim"
_SAID: Final = {
    "node selector term with matchFields is not supported": UNREAD,
    "using label kubernetes.io/hostname is not allowed": REFUSED,
}
_API: Final = "karpenter.sh/v1"
_CLASS_API: Final = "karpenter.kwok.sh/v1alpha1"
_LOOK_SECONDS: Final = 20  # Karpenter collects pods for 1 s; a NodeClaim that comes has come after 3 s
_PROVIDER: Final = "kwok provider"
_POOL: Final = "coexistence"
_FULL_GIB: Final = MEMORY_GIB - 4  # less than a VM is left
_LABELS: Final = {"kubevirt.io/schedulable": "true", "machine-type.node.kubevirt.io/q35": "true"}
_DEVICES: Final = ("kvm", "tun", "vhost-net")


class Case(NamedTuple):
    """A form on `size` nodes, one of which has `labels`. `flags` are those of `serve`; `spec` is put into the pod."""

    form: Form
    expected: str
    size: int = len(NODES)
    flags: Sequence[str] = ()
    labels: Mapping[str, str] = {}
    settings: str = _PROVIDER
    spec: Mapping[str, Any] = {}


_UNLISTED: Final = SHORTLIST._replace(title=PREFERENCE.title, listed=False)
_HOST: Final = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [PREFERENCE.node]}]}
_PREFERRED: Final = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": _HOST}]}
_BY_HOSTNAME: Final = {"affinity": {"nodeAffinity": _PREFERRED}}
_KARPENTERS: Final = {"karpenter.sh/nodepool": "other"}
CASES: Final = (
    Case(NOTHING, MADE),
    Case(PIN, UNREAD),
    Case(SEVERAL, UNREAD),
    Case(PREFERENCE, MADE),
    Case(NOTHING._replace(title="preference by kubernetes.io/hostname, of somebody else"), MADE, spec=_BY_HOSTNAME),
    Case(TARGET, REFUSED),
    Case(SHORTLIST, UNREAD, MANY, settings=f"{_PROVIDER}, {MANY} nodes"),
    Case(_UNLISTED, MADE, MANY, settings=f"{_PROVIDER}, {MANY} nodes, --shortlist=off", flags=("--shortlist=off",)),
    Case(_UNLISTED, MADE, MANY, settings=f"{_PROVIDER}, {MANY} nodes, one of them Karpenter's", labels=_KARPENTERS),
)


def rows(cluster: Cluster) -> Iterator[Row]:
    """Each case, one after the other."""
    version = pinned(build.KARPENTER, "sigs.k8s.io/karpenter")
    with _karpenter(cluster) as karpenter:
        for case in CASES:
            seen = _outcome(cluster, karpenter, case)
            yield Row(f"Karpenter {version}", case.settings, case.form.title, case.expected, seen)


def _outcome(cluster: Cluster, karpenter: Program, case: Case) -> str:
    logged = karpenter.log.stat().st_size
    described = nodes(case.size)
    names = [each["metadata"]["name"] for each in described if each["kind"] == "Node" and each["apiVersion"] == "v1"]
    described[-3]["metadata"]["labels"] |= case.labels
    cluster.become([*described, *case.form.objects()])
    scheduler = cluster.plane.scheduler
    assert scheduler is not None
    scheduler.stop()
    try:
        with cluster.webhook(*case.flags):
            pod = cluster.create(case.form, **case.spec)
        for name in names:
            cluster.api.create(filler("full", name, _FULL_GIB))
    finally:
        scheduler.start()
    try:
        return _seen(cluster, pod) or _why(karpenter.log, logged)
    finally:
        cluster.clear()
        _remove_nodes(cluster)


def _why(log: Path, begin: int) -> str:
    """What Karpenter logged of the pod it made no NodeClaim for."""
    with log.open("rb") as lines:
        lines.seek(begin)
        text = lines.read().decode()
    return next((seen for said, seen in _SAID.items() if said in text), UNEXPLAINED)


def _seen(cluster: Cluster, pod: Object) -> str:
    """What the pod got; empty if Karpenter made no NodeClaim."""
    assert not cluster.placed(pod), "a full cluster has room"
    if not within(_LOOK_SECONDS, lambda: cluster.api.items(_API, "NodeClaim")):
        return ""
    if not within(_LOOK_SECONDS, lambda: _nodes(cluster)):
        return CLAIMED
    for node in _nodes(cluster):
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        cluster.api.patch(node, {"status": {"conditions": [ready]}}, subresource="status")
    return MADE if within(_LOOK_SECONDS, lambda: cluster.api.get(pod)["spec"].get("nodeName")) else CLAIMED


def _nodes(cluster: Cluster) -> list[Object]:
    """The nodes that Karpenter has made."""
    return cluster.api.items("v1", "Node", labelSelector=f"karpenter.sh/nodepool={_POOL}")


def _remove_nodes(cluster: Cluster) -> None:
    """Take Karpenter's nodes away, as Karpenter would."""
    for each in cluster.api.items(_API, "NodeClaim"):
        cluster.api.delete(each, missing_ok=True)
    gone = within(MAX_WAIT_SECONDS, lambda: not cluster.api.items(_API, "NodeClaim") and not _nodes(cluster))
    assert gone, [each["metadata"] for each in cluster.api.items(_API, "NodeClaim")]


@contextmanager
def _karpenter(cluster: Cluster) -> Iterator[Program]:
    directory: Path = cluster.plane.directory
    kwok, crds = build.karpenter()
    cluster.plane.install(json.loads(file.read_text(encoding="utf-8")) for file in crds)
    for each in _pool():
        cluster.api.apply(each)
    kubeconfig = cluster.plane.kubeconfig(directory / "karpenter.kubeconfig", cluster.plane.admin)
    types = directory / "instance-types.json"
    types.write_text(json.dumps([_instance_type()]))
    port = free_port("127.0.0.1")
    words = ["--disable-leader-election=true", f"--health-probe-port={port}", "--metrics-port=0", "--log-level=debug"]
    words = [f"KUBECONFIG={kubeconfig}", str(kwok), *words, f"--instance-types-file-path={types}"]
    program = Program(Path("/usr/bin/env"), words, directory / "karpenter.log")
    program.start()
    try:
        program.until_ready(f"http://127.0.0.1:{port}/readyz")
        yield program
    except BaseException:
        print(program.tail())  # noqa: T201 - the program failed; this says why
        raise
    finally:
        program.stop()


def _pool() -> list[Object]:
    """A NodePool whose nodes have the labels that virt-handler gives to a node with KVM."""
    name = {"name": _POOL}
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": _POOL}
    requirements = [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]
    template = {"metadata": {"labels": _LABELS}, "spec": {"nodeClassRef": reference, "requirements": requirements}}
    disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
    return [
        {"apiVersion": _CLASS_API, "kind": "KWOKNodeClass", "metadata": name, "spec": {}},
        {
            "apiVersion": _API,
            "kind": "NodePool",
            "metadata": name,
            "spec": {"template": template, "disruption": disruption},
        },
    ]


def _instance_type() -> Mapping[str, Any]:
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]},
    ]
    amounts = {"cpu": "64", "memory": f"{MEMORY_GIB}Gi", "ephemeral-storage": "1Ti", "pods": "200"}
    return {
        "name": "large-64x",
        "offerings": [{"Price": 1.0, "Available": True, "Requirements": requirements}],
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {**amounts, **{f"devices.kubevirt.io/{device}": "1000" for device in _DEVICES}},
    }
