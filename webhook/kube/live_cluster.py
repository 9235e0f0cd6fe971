"""LiveCluster: a live cluster for a command that asks about one object, with the permissions of the user's kubeconfig.

It reads what is asked for: one object by a GET, a list only where a question needs all objects. So somebody who may
get one VM, and not list pods, still gets an answer. Nothing is watched, and nothing is read twice. Invariant: what the
API server refuses becomes the problem of one question.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

import msgspec

from webhook.component_base.client.api import Api
from webhook.component_base.client.transport import ApiError
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.scheduler.state.snapshot import SnapshotUnavailable
from webhook.core.view import KINDS_OF_VMS, ClusterView, Kind, NoObject, Ref
from webhook.kube import reader
from webhook.kube.collect import read_part
from webhook.objects.documents import Document
from webhook.objects.kinds import OF_CORE, POD, UNFINISHED_POD, VIRT_LAUNCHER_POD, APIResource
from webhook.objects.manifests import Listed, Manifests
from webhook.objects.objects import ObjectStore
from webhook.objects.parts import Part

_T = TypeVar("_T")
_NOT_READ = "it was not read"


class LiveCluster(Manifests):
    """A live cluster behind one API client."""

    def __init__(
        self,
        runner: asyncio.Runner,
        api: Api,
        *,
        longhorn_namespace: str,
    ) -> None:
        super().__init__(ObjectStore(), longhorn_namespace=longhorn_namespace)
        self._api = api
        self._run = runner.run
        self._lists: dict[tuple[str, str, str], str] = {}  # title, namespace and selector -> problem, empty for none
        self._reads: dict[tuple[str, NamespacedName], str] = {}  # title and name -> as in _lists
        self._on_node: dict[NamespacedName, Sequence[Pod]] = {}
        self._missing: dict[Ref, None] | None = {}

    def want(self, kind: APIResource[Any], namespace: str = "", *, selector: str = "") -> str:
        """List the objects of a kind, once. Returns why they can't be listed; empty if they were."""
        key = kind.title, namespace, selector
        if key not in self._lists:
            part = Part(kind=kind, namespace=namespace, selector=selector)
            record, items = self._run(read_part(self._api, part, self.longhorn_namespace))
            self._lists[key] = record.problem
            for item in items:
                self.objects.add(kind, item)
            self.forget_indexes()
        return self._lists[key]

    def look_up(self, kind: APIResource[_T], name: str, namespace: str = "") -> Listed[_T]:
        """Return the object of that name, or nothing if it does not exist. One GET."""
        key = NamespacedName(namespace, name)
        if self.objects.get(kind, name, namespace) is None and (kind.title, key) not in self._reads:
            self._run(self._read(kind, key))
        found = self.objects.get(kind, name, namespace)
        if found is not None:
            return Listed([found])
        return Listed(problem=self._reads.get((kind.title, key), ""))

    def why_unread(self, kind: APIResource[Any], name: str) -> str:
        """Read this cluster-wide object. Returns why it can't be read; empty if it was, or if there is none."""
        return self.look_up(kind, name).problem

    def find(self, kind: APIResource[_T], name: str, namespace: str, source: str) -> _T:
        """Return the object of that name; by a list of its name if the user may list and not get it.

        Raises:
            ApiError: the object does not exist or can't be read.
            BadDocument: it has a field of a wrong type. `source` is what the error calls the object.
        """
        value = self._run(reader.get_or_list(self._api, kind.path(reader.within(namespace), name)))
        stated = {"apiVersion": kind.api_version, "kind": kind.kind, **value}
        found = Document(source, stated).read(kind.type)
        self.objects.add(kind, found)
        self.forget_indexes()
        return found

    def read_missing(self) -> None:
        """GET each object that is missing."""
        missing = list(self._missing or ())
        self._missing = {}
        self._run(self._read_all(missing))

    async def _read_all(self, missing: Sequence[Ref]) -> None:
        async with asyncio.TaskGroup() as group:
            for ref in missing:
                if ref.kind is Kind.VIRT_LAUNCHERS_ON_NODE:
                    group.create_task(self._read_on_node(ref.key))
                else:
                    kind = OF_CORE[ref.kind]
                    group.create_task(self._read(kind, NamespacedName(self._namespace(kind, ref), ref.name)))

    async def _read(self, kind: APIResource[Any], key: NamespacedName) -> None:
        """GET one object, and note why it is not there."""
        problem = ""
        try:
            path = kind.path(reader.within(key.namespace) if key.namespace else "", reader.name(key.name))
            self.objects.add(kind, msgspec.convert(await reader.get(self._api, path), kind.type))
            self.forget_indexes()
        except reader.Missing:
            pass
        except (ApiError, msgspec.ValidationError) as error:
            problem = str(error)
        self._reads[kind.title, key] = problem

    async def _read_on_node(self, key: NamespacedName) -> None:
        part = Part(kind=VIRT_LAUNCHER_POD, namespace=key.namespace, fields=f"spec.nodeName={key.name}")
        record, pods = await read_part(self._api, part, self.longhorn_namespace)
        self._reads[VIRT_LAUNCHER_POD.title, key] = record.problem
        self._on_node[key] = pods

    # The ClusterView.

    @property
    def missing(self) -> Collection[Ref]:
        """The objects that core asked for and that were not read yet."""
        return tuple(self._missing or ())

    def why_no_owner(self, ref: Ref, uid: str) -> NoObject | None:
        """As Manifests do, but the object is missing if it was not read."""
        kind = OF_CORE[ref.kind]
        key = NamespacedName(self._namespace(kind, ref), ref.name)
        known = self.objects.get(kind, key.name, key.namespace) is not None
        if not known and (kind.title, key) not in self._reads:
            return self._note(ref)
        return super().why_no_owner(ref, uid)

    def assumes(self, kind: Kind) -> bool:  # noqa: ARG002 - for files
        """Return False: the API server says what exists."""
        return False

    def without_reads(self) -> ClusterView:
        """Return the same cluster, for which nothing becomes missing."""
        quiet = copy.copy(self)
        quiet._missing = None  # noqa: SLF001 - its own copy
        return quiet

    def _virt_launchers_on(self, ref: Ref) -> Sequence[Pod] | NoObject:
        found = self._on_node.get(ref.key)
        if found is None:
            return self._note(ref)
        return NoObject.UNAVAILABLE if self._reads[VIRT_LAUNCHER_POD.title, ref.key] else found

    def _absent(self, ref: Ref, kind: APIResource[Any]) -> NoObject:
        key = NamespacedName(self._namespace(kind, ref), ref.name)
        read = self._reads.get((kind.title, key))
        if read is None and self._unread(kind, key.namespace):
            return NoObject.UNAVAILABLE if ref.kind in KINDS_OF_VMS else self._note(ref)
        return NoObject.UNAVAILABLE if read else NoObject.NOT_FOUND

    def _note(self, ref: Ref) -> NoObject:
        if self._missing is not None:
            self._missing[ref] = None
        return NoObject.UNAVAILABLE

    def _unread(self, kind: APIResource[Any], namespace: str = "") -> str:
        kinds = (kind, UNFINISHED_POD) if kind.kind == POD.kind else (kind,)
        lists = [(each.title, where, "") for each in kinds for where in {namespace, ""}]
        problems = [self._lists[key] for key in lists if key in self._lists]
        return "" if "" in problems else next(iter(problems), _NOT_READ)

    def read_error(self, ref: Ref) -> str:
        """Return why this object could not be read."""
        kind = OF_CORE[ref.kind]
        key = (
            ref.key if ref.kind is Kind.VIRT_LAUNCHERS_ON_NODE else NamespacedName(self._namespace(kind, ref), ref.name)
        )
        return self._reads.get((kind.title, key)) or self._unread(kind, key.namespace)

    def snapshot(self) -> ListedSnapshot | SnapshotUnavailable:
        """Return the snapshot of pods and nodes; SnapshotUnavailable until the pods were listed."""
        listed = (UNFINISHED_POD.title, "", "") in self._lists
        return super().snapshot() if listed else SnapshotUnavailable("the pods were not listed")

    def _vms_unread(self, kind: APIResource[Any], namespace: str) -> str:
        return self._unread(kind, namespace)
