"""Cluster: what explain asks, whether files describe it or an API server answers for it.

Beside core's questions these are the ones whose answers are shown and decide nothing. They may wait; a view may not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolumeClaim
from webhook.core.view import ClusterView, NeedObjects, Ref
from webhook.explain.api.names import Named, Type
from webhook.files.documents import Document

_T = TypeVar("_T")
_ROUNDS_MAX: Final = 16  # from a claim to a node and Longhorn's word on it are five


class Listed(Struct, Generic[_T], frozen=True):
    """Every object of a question, or none of them, and then the `problem` that kept them from us."""

    items: Sequence[_T] = ()
    problem: str = ""


class ClusterReader(Protocol):
    """What can be asked."""

    @property
    def origin(self) -> str:
        """Where its facts come from."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace of what states none."""
        ...

    @property
    def view(self) -> ClusterView:
        """What was read so far."""
        ...

    def read(self, refs: Sequence[Ref]) -> None:
        """Read these, so that the next `view` does not call them NOT_CACHED."""
        ...

    def node_names(self) -> Listed[str]:
        """Every node. The next `view` holds all that judging them takes."""
        ...

    def claims(self, namespace: str) -> Listed[PersistentVolumeClaim]:
        """Every claim of a namespace."""
        ...

    def prepare_snapshot(self, is_gone: Callable[[Pod], bool], *, needed: bool) -> None:
        """Have the next `view` know what the pods but these leave of the nodes, where that is `needed` or known."""
        ...

    def prepare_volume(self, volume: str) -> Sequence[str]:
        """Have the next `view` know which claims and VMs use a Longhorn volume; what of that can't be known."""
        ...

    def find(self, named: Named, namespace: str) -> Document:
        """The object of that name.

        Raises:
            UserError: it can't be had.
        """
        ...

    def lookup(self, type_: Type, name: str, namespace: str = "") -> Listed[Document]:
        """The object of that name where there is one."""
        ...

    def pods_of_vmi(self, vmi: str, namespace: str) -> Listed[Pod]:
        """The virt-launcher pods that a VirtualMachineInstance has now."""
        ...


def answer_when_read(cluster: ClusterReader, ask: Callable[[ClusterView], _T | NeedObjects]) -> _T:
    """The answer of core once everything that it needs was read."""
    for _ in range(_ROUNDS_MAX):
        answer = ask(cluster.view)
        if not isinstance(answer, NeedObjects):
            return answer
        cluster.read(answer.refs)
    raise AssertionError(f"core still needs something after {_ROUNDS_MAX} rounds; please report this")
