"""Clusters of more than 100 nodes in zones, an app whose pods are on them, and a VM with rules between pods."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from zlib import crc32

import jsonpatch
from support.fakes.views import cluster
from support.models import oracle
from support.models.scheduler_model import REQUIRED, Situation, refuses
from support.objects import builders, builders_cluster, builders_kubevirt, builders_longhorn, builders_pods

from webhook.core.admit import Answer, admit
from webhook.core.decision import Pin
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.opt_in import Policy
from webhook.objects.cluster import Cluster

Object = dict[str, Any]
HOST: Final = "kubernetes.io/hostname"
_NAMESPACE: Final = "vms"
_TAINT: Final = "reserved"
_APP: Final = {"matchLabels": {"app": "db"}}


@dataclass
class ZonedCluster:
    """A cluster and a VM whose share-manager is on the first node.

    Attributes:
        zones: the number of nodes by zone.
        app: the number of the app's pods by zone.
        rules: fields of the VM's PodSpec.
        others: more pods.
        mode: the annotation of the VM.
        replicas: of the webhook.
        tainted: the zones whose nodes have a taint.
        uid: of the VM. A short list has other nodes for another one.
    """

    zones: Sequence[int]
    app: Sequence[int]
    rules: Object = field(default_factory=dict)
    others: Sequence[Object] = ()
    mode: str = "true"
    replicas: int = 2
    tainted: tuple[int, ...] = ()
    uid: str = builders.OWNER_UID

    def __post_init__(self) -> None:
        """Make the objects."""
        self.nodes: list[Object] = []
        self.pods: list[Object] = list(self.others)
        for zone, (size, count) in enumerate(zip(self.zones, self.app, strict=True)):
            names = [node_name(zone, number) for number in range(size)]
            taints = [f"{_TAINT}:NoSchedule"] if zone in self.tainted else []
            self.nodes += [builders.node(name, labels={"zone": str(zone)}, taints=taints) for name in names]
            self.pods += [
                builders_pods.pod(f"db-{zone}-{number}", node=names[number % size], labels={"app": "db"})
                for number in range(count)
            ]
        self.pod = builders.virt_launcher_pod(
            opt_in=self.mode, claims=["disk"], labels={"app": "db"}, namespace=_NAMESPACE, **self.rules
        )
        self.pod["metadata"]["name"] = "virt-launcher-db01"
        self.pod["metadata"]["ownerReferences"][0]["uid"] = self.uid

        self.disk = [
            builders_cluster.persistent_volume_claim("disk", volume_name="pv"),
            builders_cluster.persistent_volume("pv", claim="disk", handle="pv"),
        ]

    def answered(self) -> tuple[Pin, Object]:
        """Return the decision, and the pod after the patch."""
        answer = admit(json.dumps(builders.review(self.pod)).encode(), self.view(), Policy())
        assert isinstance(answer, Answer)
        assert isinstance(answer.decision, Pin)
        patch = json.loads(base64.b64decode(json.loads(answer.body)["response"]["patch"]))
        after: Object = jsonpatch.apply_patch(copy.deepcopy(self.pod), patch)
        return answer.decision, after

    def view(self) -> Cluster:
        """Return the cluster as the webhook sees it."""
        home = self.nodes[0]["metadata"]["name"]
        objects = [
            *self.nodes,
            *self.pods,
            *self.disk,
            builders_longhorn.share_manager("pv", ownerID=home, state="running"),
            builders_longhorn.share_manager_pod("pv", nodeName=home),
            *(builders_longhorn.longhorn_node(node["metadata"]["name"]) for node in self.nodes),
            builders_kubevirt.virtual_machine("db01", ("disk",), namespace=_NAMESPACE),
            builders_kubevirt.virtual_machine_instance("db01", ("disk",), namespace=_NAMESPACE, uid=self.uid),
        ]
        view = cluster(*objects)
        snapshot = view.snapshot()
        assert isinstance(snapshot, ListedSnapshot)
        snapshot.replicas = self.replicas  # there is no configuration that says in which namespace they are
        return view

    def feasible(self, pod: Object) -> Iterator[str]:
        """Yield the nodes on which kube-scheduler would put the pod, by the model of its filters.

        The model has no pod affinity and no topology spread: with these the webhook writes no requirement.
        """
        namespaces = {_NAMESPACE: {"kubernetes.io/metadata.name": _NAMESPACE}}
        for node in self.nodes:
            name = node["metadata"]["name"]
            if oracle.admits(pod, node):
                situation = Situation(self.nodes, self.pods, namespaces, pod, name)
                if not refuses(situation):
                    yield name


def node_name(zone: int, number: int) -> str:
    """Return the name of a node. In the order of their names the nodes of the zones are mixed."""
    return f"n{crc32(f'{zone}-{number}'.encode()):08x}-{zone}-{number}"


def stranding() -> ZonedCluster:
    """Three zones of 64, 64 and 2 nodes, an app of 20 in each, and a VM of it that must be spread over all three.

    The short list of this VM, if it had one, would have no node of the third zone.
    """
    spread = {**_spread("zone"), "maxSkew": 2, "minDomains": 3}
    return ZonedCluster((64, 64, 2), (20, 20, 20), {"topologySpreadConstraints": [spread]}, uid="vm-0")


def drawn(random: Random) -> ZonedCluster:
    """Make a cluster; the VM has no rule in a fifth of them."""
    zones = random.choice(((64, 64, 2), (90, 10, 3), (103,), (100, 4), (36, 36, 36)))
    balanced = random.choice((0, 1, 2, 5))
    app = [balanced + random.choice((0, 0, 0, 1)) for _ in zones]
    rules: Object = {}
    if random.random() < 0.6:
        constraint = {**_spread(random.choice(("zone", "zone", HOST))), "maxSkew": random.choice((1, 2))}
        if random.random() < 0.7:
            constraint["minDomains"] = random.choice((1, len(zones), len(zones)))
        if random.random() < 0.2:
            constraint["whenUnsatisfiable"] = "ScheduleAnyway"
            constraint.pop("minDomains", None)  # an API server refuses both together
        if random.random() < 0.3:
            constraint["nodeTaintsPolicy"] = "Honor"
        rules["topologySpreadConstraints"] = [constraint]
    if random.random() < 0.5:
        kind = random.choice(("podAffinity", "podAntiAffinity"))
        rules["affinity"] = {kind: {REQUIRED: [{"topologyKey": random.choice(("zone", HOST)), "labelSelector": _APP}]}}
    away = [{"topologyKey": random.choice(("zone", HOST)), "labelSelector": _APP}]
    node = node_name(random.randrange(len(zones)), random.randrange(2))
    others = [builders_pods.pod("keeper", node=node, away=away)] if random.random() < 0.3 else []
    mode, replicas = random.choice(("true", "preferred")), random.choice((1, 2))
    tainted = (random.randrange(len(zones)),) if random.random() < 0.3 else ()
    if random.random() < 0.3:
        rules["tolerations"] = [{"key": _TAINT, "operator": "Exists"}]
    uid = f"vm-{random.randrange(100)}"
    return ZonedCluster(zones, app, rules, others, mode, replicas, tainted, uid)


def _spread(key: str) -> Object:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": _APP}
