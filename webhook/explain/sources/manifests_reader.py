"""ManifestsReader: a cluster that files describe."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolumeClaim
from webhook.core.scheduler.state.snapshot import ListedSnapshot
from webhook.core.view import Ref
from webhook.explain.api.names import Named, Type
from webhook.explain.sources.cluster_reader import Listed
from webhook.files.documents import BadDocument, Document
from webhook.files.manifests import Manifests


class ManifestsReader:
    """A cluster that files describe; a ClusterReader."""

    namespace = "default"

    def __init__(self, manifests: Manifests, origin: str) -> None:
        self.origin = origin
        self.view = manifests

    def read(self, refs: Sequence[Ref]) -> None:
        """Raise AssertionError: the files were read completely, so core never needs to read an object."""
        asked = ", ".join(f"{ref.kind} {ref.name}" for ref in refs)
        raise AssertionError(f"core asked to read {asked}, although all manifests were read; please report this")

    def node_names(self) -> Listed[str]:
        """Return the names of all nodes, sorted."""
        return Listed(self.view.node_names())

    def claims(self, namespace: str) -> Listed[PersistentVolumeClaim]:
        """Return the claims of a namespace, by name."""
        return Listed(self.view.claims(namespace))

    def prepare_snapshot(self, is_gone: Callable[[Pod], bool], *, needed: bool) -> None:  # noqa: ARG002 - the protocol's signature
        """Leave the pods that `is_gone` selects out of the snapshot. The files describe all pods."""
        snapshot = self.view.snapshot()
        if isinstance(snapshot, ListedSnapshot):
            snapshot.leave_out(is_gone)

    def prepare_volume(self, volume: str) -> Sequence[str]:  # noqa: ARG002 - the protocol's signature
        """Do nothing: the files describe all claims and pods."""
        return ()

    def lookup(self, type_: Type, name: str, namespace: str = "") -> Listed[Document]:  # noqa: ARG002 - the protocol's signature
        """Return a problem: the manifests have none of the kinds that explain looks up."""
        return Listed(problem=f"explain reads no {type_.kind} from {self.origin}")

    def find(self, named: Named, namespace: str) -> Document:
        """Raise BadDocument: the manifests have none of the kinds that users ask for by name."""
        raise BadDocument(
            f"{named}: explain reads no {named.type.kind} of namespace {namespace} from {self.origin}; "
            "expected the object in a file of its own: --filename FILE"
        )

    def pods_of_vmi(self, vmi: str, namespace: str) -> Listed[Pod]:  # noqa: ARG002 - the protocol's signature
        """Return no pods: for an object of a file, explain shows no current pods."""
        return Listed()
