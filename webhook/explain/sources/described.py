"""Described: the cluster that files describe."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolumeClaim
from webhook.core.scheduler.state.snapshot import ListedSnapshot
from webhook.core.view import Ref
from webhook.explain.api.names import Named, Type
from webhook.explain.sources.cluster import Listed
from webhook.files.documents import BadDocument, Document
from webhook.files.manifests import Manifests


class Described:
    """The cluster that files describe; a Cluster."""

    namespace = "default"

    def __init__(self, manifests: Manifests, origin: str) -> None:
        self.origin = origin
        self.view = manifests

    def read(self, refs: Sequence[Ref]) -> None:
        """Nothing is left to read: the files were read whole before anything was asked."""
        asked = ", ".join(f"{ref.kind} {ref.name}" for ref in refs)
        raise AssertionError(f"core asked to read {asked}, which manifests never leave unread; please report this")

    def node_names(self) -> Listed[str]:
        """Every node, by name."""
        return Listed(self.view.node_names())

    def claims(self, namespace: str) -> Listed[PersistentVolumeClaim]:
        """Every claim of a namespace, by name."""
        return Listed(self.view.claims(namespace))

    def know_room(self, is_gone: Callable[[Pod], bool], *, needed: bool) -> None:  # noqa: ARG002 - as below
        """The files tell every pod."""
        snapshot = self.view.snapshot()
        if isinstance(snapshot, ListedSnapshot):
            snapshot.leave_out(is_gone)

    def know_volume(self, volume: str) -> Sequence[str]:  # noqa: ARG002 - the Cluster's question
        """The files tell all that there is."""
        return ()

    def lookup(self, type_: Type, name: str, namespace: str = "") -> Listed[Document]:  # noqa: ARG002 - as above
        """Of the kinds that are looked up so files describe nothing."""
        return Listed(problem=f"{self.origin} is not looked through for a {type_.kind}")

    def find(self, named: Named, namespace: str) -> Document:
        """No rule reads the kinds that have names here, so no manifest holds them."""
        raise BadDocument(
            f"{named}: {self.origin} is not looked through for a {named.type.kind} in namespace {namespace}; "
            "expected it in a file of its own: --filename FILE"
        )

    def launchers(self, instance: str, namespace: str) -> Listed[Pod]:  # noqa: ARG002 - the Cluster's question
        """Files describe no virt-launcher pods."""
        return Listed()
