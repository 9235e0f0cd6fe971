"""An independent model of a volume's VMs: which VMs use it, on which nodes, and which node can run its share-manager.

It works on plain dicts, as `cluster_model`. The property tests compare the answers for share-manager pods with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from support.fakes.views import LONGHORN_NAMESPACE
from support.models.cluster_model import ClusterModel
from support.models.outcomes import PREFERRED, node_affinity, terms_of
from support.strategies.affinity_shapes import Object
from support.strategies.steering_scenarios import VOLUME
from support.strategies.strategies import Scenario

from webhook.core.opt_in import Mode


class Model:
    """The objects of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.cluster = ClusterModel(scenario.objects)
        self.pod = scenario.pod
        self._scenario = scenario

    @property
    def vms(self) -> list[Object]:
        """Return the pods of VMs that use the volume and have not ended."""
        claims = set(self._claims())
        pods = [each for each in self._scenario.objects if each["kind"] == "Pod"]
        alive = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]
        return [pod for pod in alive if claims & set(_claims_of(pod))]

    @property
    def asking(self) -> list[Object]:
        """Return those of these pods that opt in."""
        allowed = {"required", "preferred"} | ({"true"} if self._scenario.mode is not Mode.OFF else set())
        return [vm for vm in self.vms if _opt_in(vm) in allowed]

    @property
    def homes(self) -> set[str | None]:
        """Return the nodes on which those pods are, or will be by their pin or by a ticket."""
        homes: set[str | None] = set()
        for vm in self.asking:
            node = vm["spec"].get("nodeName")
            homes |= {node} if node else self._tickets() | {field["values"][0] for field in _fields(vm)}
        return homes

    def _tickets(self) -> set[str | None]:
        attachment = self.cluster.longhorn("VolumeAttachment", VOLUME)
        tickets = (attachment["spec"].get("attachmentTickets") or {}).values() if attachment else ()
        return {ticket["nodeID"] for ticket in tickets if ticket["type"] == "csi-attacher"}

    def takes(self, name: str) -> bool:
        """Whether the pod can run on the node, and no preference of the pod is against it."""
        spec, affinity = self.pod["spec"], node_affinity(self.pod)
        plain = {key: spec.get(key) for key in ("tolerations", "nodeSelector")} | {
            "affinity": {"nodeAffinity": affinity}
        }
        fit = self.cluster.can_start({"metadata": {}, "spec": plain}, LONGHORN_NAMESPACE, name)
        return fit and not any(self._against(name, term) for term in affinity.get(PREFERRED) or ())

    def _against(self, name: str, term: Object) -> bool:
        fields = (term.get("preference") or {}).get("matchFields") or ()
        return any(field["operator"] == "NotIn" and name in field["values"] for field in fields)

    def _claims(self) -> Iterator[tuple[str, str]]:
        for each in self._scenario.objects:
            if each["kind"] == "PersistentVolume":
                csi, claim = each["spec"].get("csi") or {}, each["spec"].get("claimRef") or {}
                if (csi.get("driver"), csi.get("volumeHandle")) == ("driver.longhorn.io", VOLUME) and claim.get("name"):
                    yield claim.get("namespace", ""), claim["name"]


def _claims_of(pod: Object) -> list[tuple[str, str]]:
    sources = [volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes") or ()]
    return [(pod["metadata"]["namespace"], source["claimName"]) for source in sources if source]


def _opt_in(pod: Object) -> str | None:
    asked: str | None = (pod["metadata"].get("annotations") or {}).get("kubevirt-scheduler/co-schedule")
    return asked


def _fields(pod: Object) -> list[Object]:
    return [field for term in terms_of(node_affinity(pod)) for field in term["matchFields"]]
