"""The cluster that explain asks: a live one, or one that files describe; and how it finds the objects of the user.

Somebody who may get one VM, and not list pods, still gets an answer: what can't be read becomes a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TextIO, TypeVar

from webhook.component_base.errors import UserError, did_you_mean
from webhook.core.api.meta import NamespacedName
from webhook.core.view import ClusterView
from webhook.explain.names import Named
from webhook.explain.settings import ExplainSettings
from webhook.objects.documents import BadDocument
from webhook.objects.kinds import (
    PERSISTENT_VOLUME,
    UNFINISHED_POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    APIResource,
)
from webhook.objects.manifests import Manifests

_T = TypeVar("_T")
_ROUNDS_MAX: Final = 16  # 5 are enough: claim, PersistentVolume, ShareManager and its pod, node, Longhorn's node


class NotFound(UserError):
    """An object that the user named does not exist or can't be read."""


class Cluster(NamedTuple):
    """A cluster. `origin` is its name for the user; `namespace` that of objects that name none."""

    view: Manifests
    origin: str
    namespace: str
    find: Callable[[Named, str], Any]

    def ask(self, question: Callable[[ClusterView], _T]) -> _T:
        """Return the answer of core: read what the view lacks, and ask again, until nothing is missing."""
        for _ in range(_ROUNDS_MAX):
            answer = question(self.view)
            if not self.view.missing:
                return answer
            self.view.read_missing()
        raise AssertionError(f"core still needs objects after {_ROUNDS_MAX} rounds of reads; please report this")

    def want(self, *kinds: APIResource[Any], namespace: str = "") -> str:
        """Have all objects of these kinds. Returns why they can't be had; empty if they are there."""
        return next((problem for kind in kinds if (problem := self.view.want(kind, namespace))), "")

    def want_users(self, namespace: str) -> str:
        """Have who uses the volumes of a namespace's claims. Returns as `want` does."""
        all_pods = self.view.has_all(UNFINISHED_POD)
        return (
            self.want(VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, namespace=namespace)
            or ("" if all_pods else self.want(UNFINISHED_POD, namespace=namespace))
            or self.want(PERSISTENT_VOLUME)
        )


@contextmanager
def open_cluster(settings: ExplainSettings, stderr: TextIO) -> Iterator[Cluster]:
    """Open the cluster of these settings, until the block ends.

    Raises:
        UserError: the files can't be read, or no API server answers.
    """
    if settings.manifests is None:
        with _live(settings) as cluster:
            yield cluster
        return
    view = Manifests.load(settings.manifests, longhorn_namespace=settings.longhorn_namespace)
    if view.objects.ignored:
        counted = ", ".join(f"{count} {kind}" for kind, count in sorted(view.objects.ignored.items()))
        stderr.write(f"{settings.manifests}: ignored objects that no rule reads: {counted}\n")
    yield of_files(view, str(settings.manifests))


def of_files(view: Manifests, files: str) -> Cluster:
    """Return the cluster that files describe. A bundle has the namespace of the user who made it."""
    made, origin = view.objects.bundle, view.objects.origin(files)

    def find(named: Named, namespace: str) -> Any:
        unreadable = view.objects.unreadable.get((named.kind.title, NamespacedName(namespace, named.name)))
        if unreadable:
            raise unreadable
        listed = view.look_up(named.kind, named.name, namespace)
        if listed.problem:
            raise BadDocument(
                f"{named}: {origin}: {listed.problem}; expected the object in these files, or in one of its own: "
                "--filename FILE"
            )
        if not listed.items:
            raise BadDocument(
                f"{named}: no {named.kind.kind} {named.name} in namespace {namespace} of {origin}"
                f"{_elsewhere(view, named, namespace) or '; check the name and --namespace'}"
            )
        return listed.items[0]

    return Cluster(view, origin, made.namespace if made else "default", find)


def _elsewhere(view: Manifests, named: Named, namespace: str) -> str:
    """Return where the object is, or the name that the user may have meant; empty if neither is known."""
    described, vmis = view.objects.of(named.kind), view.objects.of(VIRTUAL_MACHINE_INSTANCE)
    if named.kind is VIRTUAL_MACHINE and NamespacedName(namespace, named.name) in vmis:
        return f"; there is a VirtualMachineInstance without one: vmi/{named.name}"
    others = sorted(key.namespace for key in described if key.name == named.name)
    if others:
        return f"; there is one in namespace {others[0]}: -n {others[0]}"
    return did_you_mean(named.name, (key.name for key in described if key.namespace == namespace))


@contextmanager
def _live(settings: ExplainSettings) -> Iterator[Cluster]:
    from webhook.component_base.client.transport import ApiError  # noqa: PLC0415 - the API client takes 1 s to import
    from webhook.kube import reader  # noqa: PLC0415 - as ApiError
    from webhook.kube.live_cluster import LiveCluster  # noqa: PLC0415 - as ApiError

    with reader.connect_for_terminal(settings.client_config) as (runner, api, origin):
        view = LiveCluster(runner, api, longhorn_namespace=settings.longhorn_namespace)

        def find(named: Named, namespace: str) -> Any:
            kind = named.kind
            try:
                return view.find(kind, named.name, namespace, str(named))
            except reader.Missing as missing:
                if not missing.installed:
                    raise NotFound(
                        f"{named}: {origin} has no {kind.title}; expected a cluster with {kind.product}"
                    ) from None
                raise NotFound(
                    f"{named}: no {kind.kind} {named.name} in namespace {namespace} of {origin}; check the name, "
                    "--namespace and --context"
                ) from None
            except ApiError as problem:
                raise NotFound(
                    f"{named}: {problem} ({origin}, namespace {namespace}); expected the object: check your "
                    "permissions, --namespace and --context"
                ) from None

        yield Cluster(view, origin, api.namespace or "default", find)
