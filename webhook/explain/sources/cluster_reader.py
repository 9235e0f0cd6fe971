"""ClusterReader: what explain reads of a cluster. This class reads files; LiveReader reads a live cluster.

Core decides by the `view`. The other methods have the view hold what an explanation needs, or what it shows beside the
decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from webhook.component_base.errors import did_you_mean
from webhook.core.api.kubevirt import is_finished
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolumeClaim
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.placement.shortlist import SCORED_WHOLE_NODES
from webhook.core.view import ClusterView, NoObject
from webhook.explain.names import Named
from webhook.objects.api.webhooks import CONFIGURATION
from webhook.objects.documents import BadDocument
from webhook.objects.kinds import (
    CONFIG_MAP,
    CSI_NODE,
    LONGHORN_NODE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    UNFINISHED_POD,
    VIRT_LAUNCHER_POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VOLUME,
    WEBHOOK_CONFIGURATION,
    APIResource,
)
from webhook.objects.manifests import Listed, Manifests

_T = TypeVar("_T")
_DEFAULT_NAMESPACE: Final = "default"
_CREATED_BY: Final = "kubevirt.io/created-by"  # virt-controller finds the pods of a VMI by this label
_ROUNDS_MAX: Final = 16  # 5 are enough: claim, PersistentVolume, ShareManager and its pod, node, Longhorn's node


class ClusterReader:
    """What explain reads of a cluster.

    Attributes:
        view: the objects that were read so far.
        origin: the cluster, or the files, in words.
        namespace: of objects that name none: a bundle has that of the user who made the bundle.
    """

    def __init__(self, view: Manifests, files: str, longhorn_namespace: str) -> None:
        made = view.objects.bundle
        self.view = view
        self.origin = view.objects.origin(files)
        self.namespace = made.namespace if made else _DEFAULT_NAMESPACE
        self._longhorn_namespace = longhorn_namespace
        self._says_what_exists = made is not None

    def ask(self, question: Callable[[ClusterView], _T]) -> _T:
        """Return the answer of core: read what the view lacks, and ask again, until nothing is missing."""
        for _ in range(_ROUNDS_MAX):
            answer = question(self.view)
            if not self.view.missing:
                return answer
            self.view.read_missing()
        raise AssertionError(f"core still needs objects after {_ROUNDS_MAX} rounds of reads; please report this")

    def node_names(self) -> Listed[str]:
        """Return the names of all nodes. The view then has all that is needed to evaluate them."""
        problem = self._want(NODE, LONGHORN_NODE)
        return Listed(() if problem else self.view.node_names(), problem)

    def _want(self, *kinds: APIResource[Any], namespace: str = "") -> str:
        return next(filter(None, [self.view.want(kind, namespace) for kind in kinds]), "")

    def claims(self, namespace: str) -> Listed[PersistentVolumeClaim]:
        """Return the claims of a namespace, by name."""
        problem = self.view.want(PERSISTENT_VOLUME_CLAIM, namespace)
        found = self.view.objects.within(PERSISTENT_VOLUME_CLAIM, namespace)
        return Listed([] if problem else [found[name] for name in sorted(found)], problem)

    def prepare_snapshot(self, is_gone: Callable[[Pod], bool], *, needed: bool) -> None:
        """Have the view hold the snapshot of all pods, except those that `is_gone` selects.

        The pods are listed only if the snapshot is `needed`.
        """
        if needed:
            self._want(NODE, LONGHORN_NODE, UNFINISHED_POD, CSI_NODE, VIRTUAL_MACHINE_INSTANCE)
            self.view.look_up(WEBHOOK_CONFIGURATION, CONFIGURATION)
        snapshot = self.view.snapshot()
        if isinstance(snapshot, ListedSnapshot):
            snapshot.leave_out(is_gone)

    def prepare_autoscaler(self) -> str:
        """Have the view know whether a cluster-autoscaler runs, if a short list is possible in this cluster.

        Returns why that is not known; empty if it is, or if it does not matter.
        """
        return self.view.want(CONFIG_MAP) if len(self.view.node_names()) > SCORED_WHOLE_NODES else ""

    def prepare_virtual_machines(self, namespace: str) -> str:
        """Have the view hold the VMs of a namespace. Returns why they can't be listed; empty if they can."""
        return self._want(VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, namespace=namespace)

    def prepare_users(self, namespace: str) -> str:
        """Have the view hold who uses the volumes of a namespace; returns as `prepare_virtual_machines`."""
        all_pods = self.view.has_all(UNFINISHED_POD)
        return (
            self.prepare_virtual_machines(namespace)
            or ("" if all_pods else self._want(UNFINISHED_POD, namespace=namespace))
            or self._want(PERSISTENT_VOLUME)
        )

    def prepare_volume(self, volume: str) -> Sequence[str]:
        """Have the view hold the claims and VMs that use a Longhorn volume.

        Returns a sentence for each part that can't be read.
        """
        notes = list(self._find_other(volume)) if not self._claims_of(volume) else []
        for namespace in sorted({claim.namespace for claim in self._claims_of(volume)}):
            problem = self.view.want(VIRT_LAUNCHER_POD, namespace)
            if problem:
                notes.append(f"the VMs in namespace {namespace} are known only from attachment tickets: {problem}")
            problem = self.prepare_virtual_machines(namespace)
            if problem:
                notes.append(
                    f"a VM in namespace {namespace} with several pods counts where its newest pod is: {problem}"
                )
        return notes

    def _claims_of(self, volume: str) -> Sequence[NamespacedName]:
        claims = self.ask(lambda view: view.volume_claims(volume))
        return () if isinstance(claims, NoObject) else claims

    def _find_other(self, volume: str) -> Iterator[str]:
        """Read a PersistentVolume with another name, as restored volumes have; Longhorn's Volume has that name."""
        if self.view.has_all(PERSISTENT_VOLUME):
            return
        listed = self.lookup(VOLUME, volume, self._longhorn_namespace)
        if listed.problem:
            yield f"a PersistentVolume with another name than {volume} could not be looked for: {listed.problem}"
        for found in listed.items:
            if found.persistent_volume:
                self.view.look_up(PERSISTENT_VOLUME, found.persistent_volume)

    def lookup(self, kind: APIResource[_T], name: str, namespace: str = "") -> Listed[_T]:
        """Return the object of that name; nothing if it does not exist; a problem if that is not known."""
        listed = self.view.look_up(kind, name, namespace)
        return Listed(problem=f"{self.origin}: {listed.problem}") if listed.problem else listed

    def find(self, named: Named, namespace: str) -> Any:
        """Return the object of that name.

        Raises:
            UserError: the object does not exist or can't be read.
        """
        unreadable = self.view.objects.unreadable.get((named.kind.title, NamespacedName(namespace, named.name)))
        if unreadable:
            raise unreadable
        listed = self.lookup(named.kind, named.name, namespace)
        if listed.problem:
            raise BadDocument(
                f"{named}: {listed.problem}; expected the object in these files, or in one of its own: --filename FILE"
            )
        if not listed.items:
            raise BadDocument(
                f"{named}: no {named.kind.kind} {named.name} in namespace {namespace} of {self.origin}"
                f"{self._elsewhere(named, namespace) or '; check the name and --namespace'}"
            )
        return listed.items[0]

    def _elsewhere(self, named: Named, namespace: str) -> str:
        """Return where the object is, or the name that the user may have meant; empty if neither is known."""
        described = self.view.objects.of(named.kind)
        others = sorted(key.namespace for key in described if key.name == named.name)
        if others:
            return f"; there is one in namespace {others[0]}: -n {others[0]}"
        return did_you_mean(named.name, (key.name for key in described if key.namespace == namespace))

    def pods_of_vmi(self, vmi: str, namespace: str) -> Listed[Pod]:
        """Return the unfinished pods that virt-controller created for this VMI; none without the VMI."""
        listed = self.lookup(VIRTUAL_MACHINE_INSTANCE, vmi, namespace)
        uid = listed.items[0].metadata.uid if listed.items else None
        if not uid:
            return Listed(problem=listed.problem if self._says_what_exists else "")
        problem = self.view.want(POD, namespace, selector=f"{_CREATED_BY}={uid}")
        pods = self.view.all_virt_launchers()
        return Listed([pod for pod in pods if pod.metadata.label(_CREATED_BY) == uid and not is_finished(pod)], problem)
