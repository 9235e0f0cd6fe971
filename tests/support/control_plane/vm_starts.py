"""The start of a stopped VM, step by step: virt-controller creates its pod, and kube-scheduler chooses a node. Then CSI
asks for the volume on that node, and after that Longhorn creates the share-manager pod.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self

from support.control_plane.kube_api import Api, Object
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine_instance
from support.scenarios.admitting import until

NODES: Final = tuple(f"node-{letter}" for letter in "abcdefgh")

_ATTACHER: Final = "csi-attacher"


class Start(NamedTuple):
    """One VM with one volume."""

    vm: str

    @property
    def volume(self) -> str:
        """Longhorn's volume."""
        return f"pvc-{self.vm}"

    @property
    def shelf(self) -> list[Object]:
        """What there is of a VM that is stopped."""
        return [
            builders.persistent_volume_claim(self.vm, volume_name=self.volume),
            builders.persistent_volume(self.volume, claim=self.vm, handle=self.volume),
            builders.share_manager(self.volume, state="stopped", ownerID=NODES[0]),
        ]

    @property
    def instance(self) -> Object:
        """Its VirtualMachineInstance, which is there before its pod."""
        return virtual_machine_instance(self.vm, [self.vm], vm=None)

    def launcher(self, run: str = "1", **described: Any) -> Object:
        """The pod of a run of the VM; it asks for co-scheduling unless told otherwise."""
        return builders.vm_pod(f"{self.vm}-{run}", vm=self.vm, claims=[self.vm], **described)


def nodes() -> list[Object]:
    """Equal nodes, so that only the webhook influences where a pod goes."""
    makers = (builders.node, builders.longhorn_node, builders.instance_manager_pod)
    return [make(name) for make in makers for name in NODES]


class Starting:
    """Starts VMs on a control plane. It deletes at its end what it has made; other objects are others' to make."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Delete every VM's pod, every share-manager pod, and every VolumeAttachment."""
        attachments = f"/apis/{builders.LONGHORN_API_VERSION}/namespaces/{builders.LONGHORN_NAMESPACE}"
        namespaces = {builders.NAMESPACE: "", builders.LONGHORN_NAMESPACE: "longhorn.io/component=share-manager"}
        pods = [(f"/api/v1/namespaces/{each}/pods", labels) for each, labels in namespaces.items()]
        for path, labels in (*pods, (f"{attachments}/volumeattachments", "")):
            self.api.call("DELETE", path, parameters={"gracePeriodSeconds": "0", "labelSelector": labels})

    def vm(self, start: Start, run: str = "1", **described: Any) -> Object:
        """The VM's pod, created."""
        return self.api.create(start.launcher(run, **described))

    def placed(self, pod: Object) -> str:
        """The node that the scheduler has bound this pod to."""

        def node() -> str | None:
            found: str | None = self.api.get(pod)["spec"].get("nodeName")
            return found

        return until(node, f"a node for {pod['metadata']['name']}") or ""

    def ticket(self, start: Start, *places: str) -> None:
        """CSI asks for the volume on these nodes."""
        tickets = [(_ATTACHER, node) for node in places]
        self.api.apply(builders.volume_attachment(start.volume, tickets))

    def share_manager(self, start: Start, **parameters: str) -> Object:
        """The share-manager pod, created as Longhorn does; `dryRun="All"` only tries to."""
        return self.api.create(builders.share_manager_pod(start.volume, phase=None), **parameters)

    def start(self, start: Start, **described: Any) -> tuple[str, Object]:
        """The whole of it: the VM's node, and the share-manager pod as it was created."""
        node = self.placed(self.vm(start, **described))
        self.ticket(start, node)
        return node, self.share_manager(start)


def preferred(pod: Object) -> dict[str, int]:
    """Node -> weight of the preferred pod affinity to the instance-manager pod of that node."""
    affinity = (pod["spec"].get("affinity") or {}).get("podAffinity") or {}
    terms: Sequence[Object] = affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())
    labels = [term["podAffinityTerm"]["labelSelector"]["matchLabels"] for term in terms]
    return {each["longhorn.io/node"]: term["weight"] for each, term in zip(labels, terms, strict=True)}


def decision(pod: Object) -> str:
    """The annotation's words; empty where nothing was decided."""
    words: str = (pod["metadata"].get("annotations") or {}).get(builders.DECISION, "")
    return words
