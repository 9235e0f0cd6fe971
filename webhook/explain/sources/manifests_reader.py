"""ManifestsReader: a cluster that files describe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from webhook.component_base.errors import did_you_mean
from webhook.core.api.kubevirt import is_finished
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolumeClaim
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.placement.shortlist import SCORED_WHOLE_NODES
from webhook.core.view import Ref
from webhook.explain.names import Named
from webhook.explain.sources.cluster_reader import CREATED_BY, Listed
from webhook.objects.documents import BadDocument
from webhook.objects.kinds import (
    CONFIG_MAP,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    VIRTUAL_MACHINE_INSTANCE,
    APIResource,
)
from webhook.objects.manifests import Manifests

_T = TypeVar("_T")
_DEFAULT_NAMESPACE: Final = "default"


class ManifestsReader:
    """A cluster that files describe; a ClusterReader."""

    def __init__(self, manifests: Manifests, origin: str) -> None:
        self.origin = manifests.objects.origin(origin)
        self.view = manifests
        self._objects = manifests.objects

    @property
    def namespace(self) -> str:
        """The namespace of objects that name none: a bundle has that of the user who made the bundle."""
        return self._objects.bundle.namespace if self._objects.bundle else _DEFAULT_NAMESPACE

    def read(self, refs: Sequence[Ref]) -> None:
        """Raise AssertionError: the files were read completely, so core never needs to read an object."""
        asked = ", ".join(f"{ref.kind} {ref.name}" for ref in refs)
        raise AssertionError(f"core asked to read {asked}, although all manifests were read; please report this")

    def node_names(self) -> Listed[str]:
        """Return the names of all nodes, sorted."""
        return Listed(self.view.node_names(), self._objects.unread(NODE))

    def claims(self, namespace: str) -> Listed[PersistentVolumeClaim]:
        """Return the claims of a namespace, by name."""
        return Listed(self.view.claims(namespace), self._objects.unread(PERSISTENT_VOLUME_CLAIM))

    def prepare_snapshot(self, is_gone: Callable[[Pod], bool], *, needed: bool) -> None:  # noqa: ARG002 - the protocol's signature
        """Leave the pods that `is_gone` selects out of the snapshot. The files describe all pods."""
        snapshot = self.view.snapshot()
        if isinstance(snapshot, ListedSnapshot):
            snapshot.leave_out(is_gone)

    def prepare_autoscaler(self) -> str:
        """Return why `bundle` could not list the ConfigMap of cluster-autoscaler, if a short list is possible."""
        return self._objects.unread(CONFIG_MAP) if len(self.view.node_names()) > SCORED_WHOLE_NODES else ""

    def prepare_virtual_machines(self, namespace: str) -> str:  # noqa: ARG002 - the protocol's signature
        """Return nothing: files that describe no VM do not say that there are none."""
        return ""

    def prepare_volume(self, volume: str) -> Sequence[str]:  # noqa: ARG002 - the protocol's signature
        """Do nothing: the files describe all claims and pods."""
        return ()

    def lookup(self, kind: APIResource[_T], name: str, namespace: str = "") -> Listed[_T]:
        """Return the object of that name; nothing if it does not exist; a problem if that is not known."""
        found = self._objects.get(kind, name, namespace)
        if found is not None:
            return Listed([found])
        problem = self._objects.problem(kind)
        return Listed(problem=f"{self.origin}: {problem}" if problem else "")

    def find(self, named: Named, namespace: str) -> Any:
        """Return the object of that name. Raises BadDocument if the files do not describe it."""
        unreadable = self._objects.unreadable.get((named.kind.title, NamespacedName(namespace, named.name)))
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
        described = self._objects.of(named.kind)
        others = sorted(key.namespace for key in described if key.name == named.name)
        if others:
            return f"; there is one in namespace {others[0]}: -n {others[0]}"
        return did_you_mean(named.name, (key.name for key in described if key.namespace == namespace))

    def pods_of_vmi(self, vmi: str, namespace: str) -> Listed[Pod]:
        """Return the unfinished pods that virt-controller created for this VMI, if the files describe the VMI."""
        listed = self.lookup(VIRTUAL_MACHINE_INSTANCE, vmi, namespace)
        if not listed.items:
            return Listed(problem=listed.problem if self._objects.bundle else "")
        uid = listed.items[0].metadata.uid
        return Listed([pod for pod in self.view.all_virt_launchers() if _is_of(pod, uid) and not is_finished(pod)])


def _is_of(pod: Pod, uid: str | None) -> bool:
    """Whether virt-controller created the pod for the VMI with this uid; a VMI without one has no pods here."""
    return uid is not None and pod.metadata.label(CREATED_BY) == uid
