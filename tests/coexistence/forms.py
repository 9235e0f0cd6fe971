"""The forms in which the webhook writes into the pods of VMs, as real pods of the corpus: `Cluster.create` makes one.

A form says what the webhook's annotation must begin with. A pod whose annotation says something else stops the run,
because a row of the table would then say something of another form.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from support.control_plane.kube_api import Object
from support.control_plane.vm_starts import decision
from support.objects import builders

PODS: Final = Path(__file__).parents[1] / "cases" / "pods"
LIST: Final = "required on any of"  # in the annotation of a pod with a short list
HOSTNAME: Final = "kubernetes.io/hostname"
MEMORY_GIB: Final = 512  # of a node; a VM takes about 8.5


class Form(NamedTuple):
    """One form.

    `homes` are the nodes of its share-managers, `mode` is what the VM asks for, and `decision` is how the annotation
    begins. `target`: a live migration made the pod. `listed`: a short list comes with the preference.
    """

    title: str
    homes: Sequence[str]
    mode: str | None
    decision: str
    target: bool = False
    listed: bool = False

    def made(self, pod: Object) -> bool:
        """Whether the webhook's annotation says that the pod has this form."""
        said = decision(pod)
        return said.startswith(self.decision) and bool(said) is bool(self.decision) and (LIST in said) is self.listed

    @property
    def vm(self) -> str:
        """The name of its VM."""
        return re.sub(r"[^a-z0-9]+", "-", self.title).strip("-")

    @property
    def node(self) -> str:
        """The node that it asks for first."""
        return self.homes[0]

    @property
    def _state(self) -> str:
        return f"persistent-state-for-{self.vm}"

    def volumes(self) -> list[str]:
        """Longhorn's volumes, in the order of `homes`."""
        return [f"pvc-{self.vm}-{number}" for number in range(len(self.homes))]

    def away(self, home: str) -> Form:
        """The same form of another VM, which prefers `home` and could not have it."""
        return self._replace(title=f"{self.title} (on another node)", homes=[home], decision=f"preferred on {home}: ")

    def objects(self) -> list[Object]:
        """The claims, and the share-managers that run. The claim with the VM's state has none."""
        once = ["ReadWriteOnce"]
        made = [
            builders.persistent_volume_claim(self._state, volume_name=self._state, access_modes=once),
            builders.persistent_volume(self._state, claim=self._state, access_modes=once),
        ]
        for volume, home in zip(self.volumes(), self.homes, strict=True):
            made += [
                builders.persistent_volume_claim(volume, volume_name=volume),
                builders.persistent_volume(volume, claim=volume),
                builders.share_manager(volume, state="running", ownerID=home),
                builders.share_manager_pod(volume, nodeName=home),
            ]
        return made

    def pod(self, **spec: Any) -> Object:
        """The pod as KubeVirt creates it, from the corpus, with a name of its own."""
        file = PODS / f"virt-launcher-{'migration-target' if self.target else 'typical'}.json"
        pod: Object = json.loads(file.read_text(encoding="utf-8"))
        uid = str(uuid.uuid5(uuid.NAMESPACE_URL, self.vm))
        meta, inner = pod["metadata"], pod["spec"]
        del meta["generateName"]
        meta |= {"name": f"virt-launcher-{self.vm}", "namespace": builders.NAMESPACE}
        meta["labels"]["kubevirt.io/created-by"] = uid
        meta["ownerReferences"][0] |= {"name": self.vm, "uid": uid}
        meta["annotations"].pop(builders.OPT_IN, None)
        if self.mode:
            meta["annotations"][builders.OPT_IN] = self.mode
        _claim(inner, self.volumes(), self._state)
        if self.target:
            anti = inner["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            anti[0]["labelSelector"]["matchLabels"]["kubevirt.io/created-by"] = uid
            inner["nodeSelector"][HOSTNAME] = self.node  # the migration's addedNodeSelector
        return {**pod, "spec": {**inner, **spec}}


def _claim(spec: Object, claims: Sequence[str], state: str) -> None:
    """The corpus' pod has two disks and its state. The disks get these claims; the block disk becomes a file system."""
    compute = spec["containers"][0]
    compute["volumeMounts"] += [{"name": each["name"], "mountPath": "/data"} for each in compute.pop("volumeDevices")]
    named = {"rootdisk": claims[0], "data": claims[-1], "vm-state": state}
    for volume in spec["volumes"]:
        if "persistentVolumeClaim" in volume:
            volume["persistentVolumeClaim"] = {"claimName": named[volume["name"]]}


PIN: Final = Form("hard pin", ["node-a"], "true", "required on node-a: ")
SEVERAL: Final = Form("several nodes", ["node-b", "node-c"], "true", "required on node-b, node-c: ")
PREFERENCE: Final = Form("preference", ["node-d"], "preferred", "preferred on node-d: ")
SHORTLIST: Final = Form("short list", ["node-d"], "preferred", "preferred on node-d: ", listed=True)
TARGET: Final = Form("target of a planned migration", ["node-e"], "true", "", target=True)
NOTHING: Final = Form("nothing of ours", ["node-f"], None, "")


def node(name: str, *, labels: Mapping[str, str] | None = None, taints: Sequence[str] = ()) -> list[Object]:
    """A node, and Longhorn's object and instance-manager pod of it. Its label kubernetes.io/hostname is its name."""
    allocatable = {"memory": f"{MEMORY_GIB}Gi"}
    made = builders.node(name, labels={HOSTNAME: name, **(labels or {})}, allocatable=allocatable, taints=taints)
    return [made, builders.longhorn_node(name), builders.instance_manager_pod(name)]


def filler(name: str, on: str, gib: int) -> Object:
    """A pod of somebody else that takes memory of a node. Nothing owns it, so no descheduler evicts it."""
    resources = {"requests": {"memory": f"{gib}Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"filler-{name}-{on}", "namespace": builders.NAMESPACE},
        "spec": {"nodeName": on, "containers": [{"name": "main", "image": "pause", "resources": resources}]},
    }


def shortlist(pod: Object) -> list[str]:
    """The nodes that the required terms of a pod name."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    selector = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {"nodeSelectorTerms": []}
    fields = [field for term in selector["nodeSelectorTerms"] for field in term.get("matchFields", ())]
    return [name for field in fields for name in field["values"]]
