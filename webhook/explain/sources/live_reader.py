"""LiveReader: the current state of a live cluster, with the permissions of the user's kubeconfig.

Invariant: an API server that can't be reached raises NoCluster; an object or list that it refuses later becomes the
`problem` of one answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from webhook.component_base.client.errors import ApiError
from webhook.component_base.errors import UserError
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.explain.names import Named
from webhook.explain.sources.cluster_reader import ClusterReader
from webhook.kube import reader
from webhook.kube.live_cluster import LiveCluster
from webhook.kube.reader import connect_for_terminal
from webhook.objects.kinds import APIResource
from webhook.objects.manifests import Listed

_T = TypeVar("_T")


class NotFound(UserError):
    """An object that the user named does not exist or can't be read."""


@contextmanager
def connect(kubeconfig: Kubeconfig, *, longhorn_namespace: str) -> Iterator[LiveReader]:
    """The live cluster, until the block ends.

    Raises as `connect_for_terminal` does.
    """
    with connect_for_terminal(kubeconfig) as (runner, api, origin):
        view = LiveCluster(runner, api, longhorn_namespace=longhorn_namespace)
        yield LiveReader(view, origin, api.namespace or "default", longhorn_namespace)


class LiveReader(ClusterReader):
    """A live cluster behind one API client."""

    view: LiveCluster

    def __init__(self, view: LiveCluster, origin: str, namespace: str, longhorn_namespace: str) -> None:
        super().__init__(view, origin, longhorn_namespace)
        self.namespace = namespace
        self._says_what_exists = True

    def lookup(self, kind: APIResource[_T], name: str, namespace: str = "") -> Listed[_T]:
        """Return the object of that name, or nothing if it does not exist. One GET."""
        return self.view.look_up(kind, name, namespace)

    def find(self, named: Named, namespace: str) -> Any:
        """Return the object of that name. Raises NotFound if it does not exist, BadDocument if it can't be read."""
        kind = named.kind
        try:
            return self.view.find(kind, named.name, namespace, str(named))
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
