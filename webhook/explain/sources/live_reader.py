"""LiveReader: the current state of a live cluster, with the permissions of the user's kubeconfig.

Each method reads or lists objects at the API server; nothing is watched. This is the only module of explain that uses
asyncio: each method runs the event loop until it has its answer. Invariant: an API server that can't be reached raises
NoCluster; an object or list that it refuses later becomes the `problem` of one answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec.structs import replace

from webhook.component_base.client.api import Api
from webhook.component_base.client.errors import ApiError
from webhook.component_base.errors import UserError
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER, is_finished
from webhook.core.api.meta import CLUSTER_AUTOSCALER_STATUS, ConfigMap, NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolumeClaim
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.placement.shortlist import SCORED_WHOLE_NODES
from webhook.core.scheduler.state.node_info import NO_HEADROOM
from webhook.core.scheduler.state.snapshot import NotCounted, SnapshotUnavailable
from webhook.core.view import Kind, NoObject, ObjectRef, Ref
from webhook.explain.names import Named
from webhook.explain.sources.cluster_reader import CREATED_BY, Listed
from webhook.explain.sources.listed_vms import list_virtual_machines
from webhook.explain.sources.live_view import Listings, LiveView
from webhook.kube import reader
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.cache.view import CallView, LiveRead
from webhook.kube.client.wire import Decoders
from webhook.kube.reader import connect_for_terminal
from webhook.kube.scheduler_cache.listed_snapshot import list_nodes, list_snapshot
from webhook.objects.documents import BadDocument, Document
from webhook.objects.kinds import VIRTUAL_MACHINE_INSTANCE, VOLUME, APIResource

_T = TypeVar("_T")


class NotFound(UserError):
    """An object that the user named does not exist or can't be read."""


@contextmanager
def connect(
    kubeconfig: Kubeconfig, *, longhorn_namespace: str, headroom: Mapping[str, int] | None = NO_HEADROOM
) -> Iterator[LiveReader]:
    """The live cluster, until the block ends. If `headroom` is None, no pods are listed.

    Raises as `connect_for_terminal` does.
    """
    with connect_for_terminal(kubeconfig) as (runner, api, origin):
        yield LiveReader(runner, api, origin, longhorn_namespace, headroom)


class LiveReader:
    """A live cluster behind one API client; a ClusterReader."""

    def __init__(
        self,
        runner: asyncio.Runner,
        api: Api,
        origin: str,
        longhorn_namespace: str,
        headroom: Mapping[str, int] | None = NO_HEADROOM,
    ) -> None:
        self.origin = origin
        self.namespace = api.namespace or "default"
        self._run = runner.run
        self._api = api
        self._longhorn_namespace = longhorn_namespace
        self._headroom = headroom
        self._cluster_cache = ClusterCache(api, longhorn_namespace=longhorn_namespace)
        self._reads: Mapping[Ref, LiveRead] = {}
        self._listings = Listings()
        self._nodes: Listed[str] | None = None

    @property
    def view(self) -> LiveView:
        """The objects that were read so far."""
        return LiveView(self._cluster_cache.caches, self._reads, self._listings)

    def read(self, refs: Sequence[Ref]) -> None:
        """GET each of these objects."""
        self._reads = self._run(self._read(refs)).reads

    async def _read(self, refs: Sequence[Ref]) -> CallView:
        deadline = asyncio.get_running_loop().time() + reader.ANSWER_SECONDS
        return await self._cluster_cache.read(self.view, refs, deadline)

    def node_names(self) -> Listed[str]:
        """Return the names of all nodes, sorted. The user must be allowed to list both kinds of nodes."""
        if self._nodes is None:
            self._nodes = self._run(self._list_nodes())
        return self._nodes

    async def _list_nodes(self) -> Listed[str]:
        try:
            nodes, longhorn_nodes = await self._all_nodes(), await self._all_of(Kind.LONGHORN_NODE)
        except ApiError as problem:
            return Listed(problem=str(problem))
        absent: dict[Ref, LiveRead] = {
            ObjectRef(Kind.LONGHORN_NODE, NamespacedName("", ref.name)): LiveRead(NoObject.NOT_FOUND) for ref in nodes
        }
        # Objects that were read one by one stay: a decision rests on them.
        self._reads = {**absent, **nodes, **longhorn_nodes, **self._reads}
        all_names = sorted(ref.name for ref in nodes)
        self._listings = replace(self._listings, nodes=all_names, longhorn_nodes=bool(longhorn_nodes))
        return Listed(all_names)

    async def _all_nodes(self) -> dict[Ref, LiveRead]:
        """All nodes with all their fields. The transform of the cache would drop some."""
        nodes = await list_nodes(self._api)
        return {ObjectRef(Kind.NODE, NamespacedName("", name)): LiveRead(node) for name, node in nodes.items()}

    async def _all_of(self, kind: Kind) -> dict[Ref, LiveRead]:
        resource, found = self._cluster_cache.caches[kind].resource, dict[Ref, LiveRead]()
        for item in await reader.get_all(self._api, resource.collection, Decoders(resource.wire)):
            key = resource.key_of(item.metadata)
            read = LiveRead(resource.to_object(key, resource.transform(item)))
            found[ObjectRef(kind, NamespacedName("", str(key)))] = read
        return found

    def prepare_snapshot(self, is_gone: Callable[[Pod], bool], *, needed: bool) -> None:
        """List the pods and the CSINodes once. If the API server refuses, the snapshot is a sentence that says why."""
        if needed and isinstance(self._listings.snapshot, NotCounted) and self._headroom is not None:
            problem = self.node_names().problem
            snapshot = SnapshotUnavailable(problem) if problem else self._run(self._count(self._headroom))
            self._listings = replace(self._listings, snapshot=snapshot)
        if isinstance(self._listings.snapshot, ListedSnapshot):
            self._listings.snapshot.leave_out(is_gone)

    async def _count(self, headroom: Mapping[str, int]) -> ListedSnapshot | SnapshotUnavailable:
        nodes = {ref.name: read.value for ref, read in self._reads.items() if isinstance(read.value, Node)}
        return await list_snapshot(self._api, nodes, headroom)

    def prepare_autoscaler(self) -> str:
        """List the ConfigMap of cluster-autoscaler once, if so many nodes were listed that a short list is possible."""
        if self._listings.autoscalers is None and len(self._listings.nodes or ()) > SCORED_WHOLE_NODES:
            named = f"metadata.name={CLUSTER_AUTOSCALER_STATUS}"
            found = self._run(self._listed("", "configmaps", ConfigMap, fields=named))
            self._listings = replace(self._listings, autoscalers=found)
        return self._listings.autoscalers.problem if self._listings.autoscalers else ""

    def prepare_virtual_machines(self, namespace: str) -> str:
        """List the VMs of a namespace."""
        found, problem = self._run(list_virtual_machines(self._api, self._cluster_cache.caches, namespace))
        self._listings = replace(self._listings, vms={**self._listings.vms, namespace: found})
        return problem

    def prepare_volume(self, volume: str) -> Sequence[str]:
        """Read the PersistentVolume of the volume, and list the VMs' pods in the namespace of its claim."""
        self.read([ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", volume))])
        claims = self.view.volume_claims(volume)
        notes: list[str] = []
        if isinstance(claims, NoObject) or not claims:
            notes += self._find_other(volume)
            claims = self.view.volume_claims(volume)
        if not isinstance(claims, NoObject):
            for namespace in sorted({claim.namespace for claim in claims} - set(self._listings.virt_launchers)):
                notes += self._run(self._list_virt_launchers(namespace))
        return notes

    def _find_other(self, volume: str) -> list[str]:
        """Read a PersistentVolume with another name, as restored volumes have; Longhorn's Volume has that name."""
        listed = self.lookup(VOLUME, volume, self._longhorn_namespace)
        if listed.problem:
            return [f"a PersistentVolume with another name than {volume} could not be looked for: {listed.problem}"]
        other = listed.items[0].persistent_volume if listed.items else ""
        if other:
            self.read([ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", other))])
            self._listings = replace(self._listings, volumes={**self._listings.volumes, volume: other})
        return []

    async def _list_virt_launchers(self, namespace: str) -> list[str]:
        resource = replace(self._cluster_cache.caches[Kind.VIRT_LAUNCHER_POD].resource, namespace=namespace)
        selector = f"{LABEL_APP}={VIRT_LAUNCHER}"  # the resource can select all pods
        try:
            items = await reader.get_all(self._api, resource.collection, Decoders(resource.wire), selector=selector)
        except ApiError as problem:
            return [f"the VMs in namespace {namespace} are known only from attachment tickets: {problem}"]
        pods = [resource.to_object(resource.key_of(item.metadata), resource.transform(item)) for item in items]
        self._listings = replace(self._listings, virt_launchers={**self._listings.virt_launchers, namespace: pods})
        return []

    def claims(self, namespace: str) -> Listed[PersistentVolumeClaim]:
        """Return the claims of a namespace."""
        return self._run(self._listed(namespace, "persistentvolumeclaims", PersistentVolumeClaim))

    async def _listed(
        self, namespace: str, plural: str, type_: type[Any], selector: str = "", fields: str = ""
    ) -> Listed[Any]:
        try:
            path = f"/api/v1/{reader.within(namespace)}/{plural}" if namespace else f"/api/v1/{plural}"
            return Listed(await reader.get_all(self._api, path, Decoders(type_), selector=selector, fields=fields))
        except ApiError as problem:
            return Listed(problem=str(problem))

    def lookup(self, kind: APIResource[_T], name: str, namespace: str = "") -> Listed[_T]:
        """Return the object of that name, or nothing if it does not exist. One GET."""
        try:
            path = kind.path(reader.within(namespace) if namespace else "", reader.name(name))
            return Listed([_object(kind, self._run(reader.get(self._api, path)), name)])
        except reader.Missing:
            return Listed()
        except (ApiError, BadDocument) as problem:
            return Listed(problem=str(problem))

    def find(self, named: Named, namespace: str) -> Any:
        """Return the object of that name. Raises NotFound if it does not exist, BadDocument if it can't be read."""
        kind = named.kind
        try:
            value = self._run(reader.get_or_list(self._api, kind.path(reader.within(namespace), named.name)))
        except reader.Missing as missing:
            if not missing.installed:
                raise NotFound(
                    f"{named}: {self.origin} has no {kind.title}; expected a cluster with {kind.product}"
                ) from None
            raise NotFound(
                f"{named}: no {kind.kind} {named.name} in namespace {namespace} of {self.origin}; check the name, "
                "--namespace and --context"
            ) from None
        except ApiError as problem:
            raise NotFound(
                f"{named}: {problem} ({self.origin}, namespace {namespace}); expected the object: check your "
                "permissions, --namespace and --context"
            ) from None
        return _object(kind, value, str(named))

    def pods_of_vmi(self, vmi: str, namespace: str) -> Listed[Pod]:
        """Return the pods that virt-controller created for this VMI, except those that have finished."""
        found = self.lookup(VIRTUAL_MACHINE_INSTANCE, vmi, namespace)
        if not found.items:
            return Listed(problem=found.problem)
        uid = found.items[0].metadata.uid or ""
        listed: Listed[Pod] = self._run(self._listed(namespace, "pods", Pod, f"{CREATED_BY}={uid}"))
        return Listed([pod for pod in listed.items if not is_finished(pod)], listed.problem)


def _object(kind: APIResource[_T], value: Mapping[str, Any], source: str) -> _T:
    stated = {"apiVersion": kind.api_version, "kind": kind.kind, **value}
    return Document(source, stated).read(kind.type)
