"""ClusterReader: what explain reads of a cluster, from files or from an API server.

Core decides by the `view`, which never waits. The other methods can wait for the API server; most of them read what
an explanation shows beside the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct

from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolumeClaim
from webhook.core.view import ClusterView, Ref
from webhook.explain.names import Named
from webhook.objects.kinds import APIResource

_T = TypeVar("_T")
CREATED_BY: Final = "kubevirt.io/created-by"  # virt-controller finds the pods of a VMI by this label
_ROUNDS_MAX: Final = 16  # 5 are enough: claim, PersistentVolume, ShareManager and its pod, node, Longhorn's node


class Listed(Struct, Generic[_T], frozen=True):
    """All objects of a list; or none, with the `problem` that explains why they could not be listed."""

    items: Sequence[_T] = ()
    problem: str = ""


class ClusterReader(Protocol):
    """What explain reads of a cluster."""

    @property
    def origin(self) -> str:
        """The cluster, or the files, in words."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace of objects that name none."""
        ...

    @property
    def view(self) -> ClusterView:
        """The objects that were read so far."""
        ...

    def read(self, refs: Sequence[Ref]) -> None:
        """Read these objects, so that the next `view` has them."""
        ...

    def node_names(self) -> Listed[str]:
        """Return the names of all nodes. The next `view` has all objects that are needed to evaluate the nodes."""
        ...

    def claims(self, namespace: str) -> Listed[PersistentVolumeClaim]:
        """Return the claims of a namespace."""
        ...

    def prepare_snapshot(self, is_gone: Callable[[Pod], bool], *, needed: bool) -> None:
        """Have the next `view` hold the snapshot of all pods, except those that `is_gone` selects.

        The pods are listed only if the snapshot is `needed`.
        """
        ...

    def prepare_autoscaler(self) -> str:
        """Have the next `view` know whether a cluster-autoscaler runs, if a short list is possible in this cluster.

        Returns why that is not known; empty if it is, or if it does not matter.
        """
        ...

    def prepare_virtual_machines(self, namespace: str) -> str:
        """Have the next `view` hold the VMs of a namespace. Returns why they can't be listed; empty if they can."""
        ...

    def prepare_volume(self, volume: str) -> Sequence[str]:
        """Have the next `view` hold the claims and VMs that use a Longhorn volume.

        Returns a sentence for each part that can't be read.
        """
        ...

    def find(self, named: Named, namespace: str) -> Any:
        """Return the object of that name.

        Raises:
            UserError: the object does not exist or can't be read.
        """
        ...

    def lookup(self, kind: APIResource[_T], name: str, namespace: str = "") -> Listed[_T]:
        """Return the object of that name, or nothing if it does not exist."""
        ...

    def pods_of_vmi(self, vmi: str, namespace: str) -> Listed[Pod]:
        """Return the current virt-launcher pods of the VirtualMachineInstance named `vmi`."""
        ...


def answer_when_read(cluster: ClusterReader, ask: Callable[[ClusterView], _T]) -> _T:
    """Return the answer of core: read what the view lacks, and ask again, until nothing is missing."""
    for _ in range(_ROUNDS_MAX):
        view = cluster.view
        answer = ask(view)
        if not view.missing:
            return answer
        cluster.read(tuple(view.missing))
    raise AssertionError(f"core still needs objects after {_ROUNDS_MAX} rounds of reads; please report this")
