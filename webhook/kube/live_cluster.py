"""LiveCluster: a live cluster for a command that asks about one object, with the permissions of the user's kubeconfig.

It lists what a row is made of, as `status` does, and GETs single objects of a kind that it may not list. So somebody
who may get one VM, and list nothing, still gets an answer. Nothing is watched, and nothing is read twice. Invariant:
what the API server refuses becomes the problem of one question.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import msgspec

from webhook.component_base.client.api import Api
from webhook.component_base.client.transport import ApiError
from webhook.component_base.errors import UserError
from webhook.core.api.meta import NamespacedName
from webhook.core.view import KINDS_OF_VMS, ClusterView, NoObject, Ref
from webhook.kube import reader
from webhook.kube.collect import collect_objects
from webhook.objects.cluster import Cluster
from webhook.objects.documents import Document
from webhook.objects.kinds import OF_CORE, APIResource
from webhook.objects.objects import ObjectStore, Part

_T = TypeVar("_T")
_ROUNDS_MAX = 16  # 5 are enough: claim, PersistentVolume, ShareManager and its pod, node, Longhorn's node


class LiveCluster(Cluster):
    """A live cluster behind one API client."""

    def __init__(self, runner: asyncio.Runner, api: Api, origin: str, *, longhorn_namespace: str) -> None:
        super().__init__(ObjectStore(), longhorn_namespace=longhorn_namespace)
        self._api, self._origin = api, origin
        self._run = runner.run
        self._reads: dict[tuple[str, NamespacedName], str] = {}  # title and name -> problem, empty for none
        self._missing: dict[Ref, None] | None = {}

    @property
    def origin(self) -> str:
        """The API server's name for the user."""
        return self._origin

    @property
    def namespace(self) -> str:
        """The namespace of the kubeconfig's context."""
        return self._api.namespace or "default"

    def collect(self, parts: Sequence[Part]) -> None:
        """List these parts."""
        self.objects = self._run(collect_objects(self._api, self._origin, parts, self.longhorn_namespace))

    def ask(self, question: Callable[[ClusterView], _T]) -> _T:
        """Return the answer of core: read what it lacks, and ask again, until nothing is missing."""
        for _ in range(_ROUNDS_MAX):
            answer = question(self)
            if not self._missing:
                return answer
            missing, self._missing = list(self._missing), {}
            self._run(self._read_all(missing))
        raise AssertionError(f"core still needs objects after {_ROUNDS_MAX} rounds of reads; please report this")

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
        self.add(kind, found)
        return found

    async def _read_all(self, missing: Sequence[Ref]) -> None:
        async with asyncio.TaskGroup() as group:
            for ref in missing:
                group.create_task(self._read(ref))

    async def _read(self, ref: Ref) -> None:
        """GET one object, and note why it is not there."""
        kind, (title, key), problem = OF_CORE[ref.kind], self._place(ref), ""
        try:
            path = kind.path(reader.within(key.namespace) if key.namespace else "", reader.name(key.name))
            self.add(kind, msgspec.convert(await reader.get(self._api, path), kind.type))
        except reader.Missing:
            pass
        except (ApiError, msgspec.ValidationError) as error:
            problem = str(error)
        self._reads[title, key] = problem

    def _place(self, ref: Ref) -> tuple[str, NamespacedName]:
        kind = OF_CORE[ref.kind]
        return kind.title, NamespacedName(self._namespace(kind, ref), ref.name)

    # The ClusterView.

    @property
    def missing(self) -> Collection[Ref]:
        """The objects that core asked for and that were not read yet."""
        return tuple(self._missing or ())

    def why_no_owner(self, ref: Ref, uid: str) -> NoObject | None:
        """As a Cluster does, but the object is missing if it was neither listed nor read."""
        kind, (title, key) = OF_CORE[ref.kind], self._place(ref)
        if self.objects.get(kind, key.name, key.namespace) is None and not self._is_read(ref, (title, key)):
            return self._note(ref)
        return super().why_no_owner(ref, uid)

    def without_reads(self) -> ClusterView:
        """Return the same cluster, for which nothing becomes missing."""
        quiet = copy.copy(self)
        quiet._missing = None  # noqa: SLF001 - its own copy
        return quiet

    def _absent(self, ref: Ref) -> NoObject:
        place = self._place(ref)
        if not self._is_read(ref, place):
            return NoObject.UNAVAILABLE if ref.kind in KINDS_OF_VMS else self._note(ref)
        return NoObject.UNAVAILABLE if self._reads.get(place) else NoObject.NOT_FOUND

    def _is_read(self, ref: Ref, place: tuple[str, NamespacedName]) -> bool:
        return place in self._reads or not super().read_error(ref)

    def _note(self, ref: Ref) -> NoObject:
        if self._missing is not None:
            self._missing[ref] = None
        return NoObject.UNAVAILABLE

    def read_error(self, ref: Ref) -> str:
        """Return why this object could not be read."""
        return self._reads.get(self._place(ref)) or super().read_error(ref)
