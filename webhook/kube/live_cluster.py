"""LiveCluster: a live cluster for a command that asks about one object, with the permissions of the user's kubeconfig.

It reads what is asked for: one object by a GET, a list only where a question needs all objects. So somebody who may
get one VM, and not list pods, still gets an answer. Nothing is watched, and nothing is read twice. Invariant: what the
API server refuses becomes the problem of one question.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from webhook.component_base.client.api import Api
from webhook.component_base.client.transport import ApiError
from webhook.component_base.errors import UserError
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.scheduler.cache import SnapshotUnavailable
from webhook.core.view import KINDS_OF_VMS, ClusterView, Kind, NoObject, Ref
from webhook.kube import reader
from webhook.kube.collect import read_part
from webhook.objects.cluster import Cluster
from webhook.objects.documents import Document
from webhook.objects.kinds import OF_CORE, POD, UNFINISHED_POD, VIRT_LAUNCHER_POD, APIResource
from webhook.objects.objects import ObjectStore
from webhook.objects.parts import Part

_T = TypeVar("_T")
_NOT_READ = "it was not read"
_ROUNDS_MAX = 16  # 5 are enough: claim, PersistentVolume, ShareManager and its pod, node, Longhorn's node


class LiveCluster(Cluster):
    """A live cluster behind one API client."""

    def __init__(
        self,
        runner: asyncio.Runner,
        api: Api,
        origin: str,
        *,
        longhorn_namespace: str,
    ) -> None:
        super().__init__(ObjectStore(), longhorn_namespace=longhorn_namespace)
        self._api, self._origin = api, origin
        self._run = runner.run
        self._lists: dict[tuple[str, str], str] = {}  # title and namespace -> problem, empty for none
        self._reads: dict[tuple[str, NamespacedName], str] = {}  # title and name -> as in _lists
        self._on_node: dict[NamespacedName, Sequence[Pod]] = {}
        self._missing: dict[Ref, None] | None = {}

    @property
    def origin(self) -> str:
        """The API server's name for the user."""
        return self._origin

    @property
    def namespace(self) -> str:
        """The namespace of the kubeconfig's context."""
        return self._api.namespace or "default"

    def ask(self, question: Callable[[ClusterView], _T]) -> _T:
        """Return the answer of core: read what it lacks, and ask again, until nothing is missing."""
        for _ in range(_ROUNDS_MAX):
            answer = question(self)
            if not self._missing:
                return answer
            missing, self._missing = list(self._missing), {}
            self._run(self._read_all(missing))
        raise AssertionError(f"core still needs objects after {_ROUNDS_MAX} rounds of reads; please report this")

    def want(self, *kinds: APIResource[Any], namespace: str = "") -> str:
        """List the objects of these kinds, once. Returns why they can't be listed; empty if they were."""
        return next((problem for kind in kinds if (problem := self._want(kind, namespace))), "")

    def _want(self, kind: APIResource[Any], namespace: str) -> str:
        key = kind.title, namespace
        if key not in self._lists:
            part = Part(kind=kind, namespace=namespace)
            record, items = self._run(read_part(self._api, part, self.longhorn_namespace))
            self._lists[key] = record.problem
            for item in items:
                self.objects.add(kind, item)
            self.forget_indexes()
        return self._lists[key]

    def why_unread(self, kind: APIResource[Any], name: str) -> str:
        """Read this cluster-wide object, once. Returns why it can't be read; empty if it was, or if there is none."""
        key = NamespacedName("", name)
        if self.objects.get(kind, name) is None and (kind.title, key) not in self._reads:
            self._run(self._read(kind, key))
        return self._reads.get((kind.title, key), "")

    def find(self, kind: APIResource[_T], name: str, namespace: str, named: str) -> _T:
        """Return the object of that name; by a list of its name if the user may list and not get it."""
        try:
            value = self._run(reader.get_or_list(self._api, kind.path(reader.within(namespace), name)))
        except reader.Missing as missing:
            if not missing.installed:
                expected = f"expected a cluster with {kind.product}"
                raise UserError(f"{named}: {self.origin} has no {kind.title}; {expected}") from None
            raise UserError(
                f"{named}: no {kind.kind} {name} in namespace {namespace} of {self.origin}; check the name, "
                "--namespace and --context"
            ) from None
        except ApiError as problem:
            raise UserError(
                f"{named}: {problem} ({self.origin}, namespace {namespace}); expected the object: check your "
                "permissions, --namespace and --context"
            ) from None
        stated = {"apiVersion": kind.api_version, "kind": kind.kind, **value}
        found = Document(named, stated).read(kind.type)
        self.objects.add(kind, found)
        self.forget_indexes()
        return found

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
        on_node = f"{VIRT_LAUNCHER_POD.fields},spec.nodeName={key.name}"
        part = Part(kind=replace(VIRT_LAUNCHER_POD, fields=on_node), namespace=key.namespace)
        record, pods = await read_part(self._api, part, self.longhorn_namespace)
        self._reads[VIRT_LAUNCHER_POD.title, key] = record.problem
        self._on_node[key] = pods

    # The ClusterView.

    @property
    def missing(self) -> Collection[Ref]:
        """The objects that core asked for and that were not read yet."""
        return tuple(self._missing or ())

    def why_no_owner(self, ref: Ref, uid: str) -> NoObject | None:
        """As a Cluster does, but the object is missing if it was not read."""
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
        lists = [(each.title, where) for each in kinds for where in {namespace, ""}]
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
        listed = (UNFINISHED_POD.title, "") in self._lists
        return super().snapshot() if listed else SnapshotUnavailable("the pods were not listed")

    def _vms_unread(self, kind: APIResource[Any], namespace: str) -> str:
        return self._unread(kind, namespace)
