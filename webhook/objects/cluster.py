"""Cluster: what was collected of a cluster, from where and when, and what could not be read. Commands ask it.

webhook.objects.collected_view is what core sees of it. webhook.kube.live_cluster is a cluster that reads on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import Struct

from webhook.component_base.errors import did_you_mean
from webhook.core import refs
from webhook.core.api import kubevirt
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.decision import Pin
from webhook.core.view import ClusterView, NoObject
from webhook.objects.collected_view import CollectedView
from webhook.objects.documents import BadDocument
from webhook.objects.kinds import (
    PERSISTENT_VOLUME,
    UNFINISHED_POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    APIResource,
)
from webhook.objects.objects import load_objects

_T = TypeVar("_T")


class Listed(Struct, Generic[_T], frozen=True):
    """All objects of a list; or none, with the `problem` that explains why they could not be listed."""

    items: Sequence[_T] = ()
    problem: str = ""


class Cluster(CollectedView):
    """A cluster that was read once."""

    @classmethod
    def load(cls, path: Path, *, longhorn_namespace: str) -> Cluster:
        """Return the cluster of a file, or of the .yaml, .yml and .json files of a directory and of those in it.

        Raises:
            BadDocument: there is no file, or objects can't be read. Each message has file and line.
        """
        return cls(load_objects(path), longhorn_namespace=longhorn_namespace)

    @property
    def origin(self) -> str:
        """From where the objects were read, in words."""
        return self.objects.origin

    @property
    def namespace(self) -> str:
        """The namespace of objects that name none: that of the user who read them."""
        return self.objects.bundle.namespace if self.objects.bundle else "default"

    def ask(self, question: Callable[[ClusterView], _T]) -> _T:
        """Return the answer to a question about what was read."""
        return question(self)

    def has_all(self, kind: APIResource[Any]) -> bool:
        """Return whether all objects of a kind were read."""
        return not self._unread(kind)

    def want(self, *kinds: APIResource[Any], namespace: str = "") -> str:
        """Have all objects of these kinds. Returns why they can't be had; empty if they are there."""
        return next((problem for kind in kinds if (problem := self._unread(kind, namespace))), "")

    def want_users(self, namespace: str) -> str:
        """Have who uses the volumes of a namespace's claims. Returns as `want` does."""
        pods = () if self.has_all(UNFINISHED_POD) else (UNFINISHED_POD,)
        of_namespace = self.want(VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, *pods, namespace=namespace)
        return of_namespace or self.want(PERSISTENT_VOLUME)

    def find(self, kind: APIResource[_T], name: str, namespace: str, named: str) -> _T:
        """Return the object of that name. `named`: as the user called it.

        Raises:
            UserError: the object does not exist or can't be read.
        """
        unreadable = self.objects.unreadable.get((kind.title, NamespacedName(namespace, name)))
        if unreadable:
            raise unreadable
        found = self.objects.get(kind, name, namespace)
        if found is not None:
            return found
        if problem := self.objects.problem(kind):
            raise BadDocument(
                f"{named}: {self.origin}: {problem}; expected the object in these files, or in one of its own: "
                "--filename FILE"
            )
        raise BadDocument(
            f"{named}: no {kind.kind} {name} in namespace {namespace} of {self.origin}"
            f"{self._elsewhere(kind, name, namespace) or '; check the name and --namespace'}"
        )

    def _elsewhere(self, kind: APIResource[Any], name: str, namespace: str) -> str:
        """Return where the object is, or the name that the user may have meant; empty if neither is known."""
        described, vmis = self.objects.of(kind), self.objects.of(VIRTUAL_MACHINE_INSTANCE)
        if kind is VIRTUAL_MACHINE and NamespacedName(namespace, name) in vmis:
            return f"; there is a VirtualMachineInstance without one: vmi/{name}"
        others = sorted(key.namespace for key in described if key.name == name)
        if others:
            return f"; there is one in namespace {others[0]}: -n {others[0]}"
        return did_you_mean(name, (key.name for key in described if key.namespace == namespace))

    def look_up(self, kind: APIResource[_T], name: str, namespace: str = "") -> Listed[_T]:
        """Return the object of that name; nothing if it does not exist; a problem if that is not known."""
        found = self.objects.get(kind, name, namespace)
        return Listed([found]) if found is not None else Listed(problem=self.objects.problem(kind))

    def why_unread(self, kind: APIResource[Any], name: str) -> str:  # noqa: ARG002 - for a live cluster
        """Return why a cluster-wide object could not be read; empty if it was, or if there is none."""
        return self.objects.unread(kind)

    # What `serve` asks.

    def view(self) -> Cluster:
        """Return itself: what was read does not change, so the cluster is its own view."""
        return self

    async def read(self, *_: object) -> Cluster:
        """Return itself: nothing is missing, so there is nothing to read."""
        return self

    def assume(self, pod: Pod, namespace: str, pin: Pin) -> None:
        """Do nothing: an admitted pod does not change the files."""

    def forget(self, pod: Pod, namespace: str) -> None:
        """Do nothing, as `assume`."""

    def has_vm(self, namespace: str, name: str) -> bool:
        """Return whether there is a VirtualMachineInstance of this name, or may be one."""
        if self.objects.bundle or self.objects.of(VIRTUAL_MACHINE_INSTANCE):
            return self.get(refs.virtual_machine_instance(NamespacedName(namespace, name))) is not NoObject.NOT_FOUND
        of_pods = ((pod.metadata.namespace or "default", kubevirt.vm_name(pod)) for pod in self.all_virt_launchers())
        return (namespace, name) in of_pods
