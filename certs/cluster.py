"""Reads and writes the two Secrets and the MutatingWebhookConfiguration of a live cluster.

Invariant: a write names the resourceVersion that it changes. Every failure is an ApiError, with one sentence that has
nothing secret in it.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final, Self

import msgspec
from msgspec import Struct

from certs import pki, plan, state
from certs.plan import Issue, Publish, RotationPolicy, Write
from certs.settings import ControllerSettings
from certs.state import ClusterState
from webhook.component_base.client.api import Api, Reply
from webhook.component_base.client.transport import ApiError
from webhook.component_base.kubeconfig import Kubeconfig

_ANSWER_SECONDS: Final = 10.0
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"


class Conflict(Exception):
    """Another client has written the object since it was read."""


class ObjectPaths(Struct, frozen=True, kw_only=True):
    """The URL paths of the objects."""

    served: str
    authority: str
    configuration: str

    @classmethod
    def of(cls, names: ControllerSettings) -> Self:
        """Return the paths of the objects that the settings name."""
        secrets = f"/api/v1/namespaces/{names.namespace}/secrets"
        configurations = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        return cls(
            served=f"{secrets}/{names.secret}",
            authority=f"{secrets}/{names.authority_secret}",
            configuration=f"{configurations}/{names.webhook_configuration}",
        )


class ClusterObjects:
    """The objects of a cluster, through one connection pool."""

    def __init__(self, api: Api, paths: ObjectPaths) -> None:
        self._api, self._paths = api, paths
        # Each process has its own field manager, so that its apply conflicts with another's instead of undoing it.
        self._owner = f"kubevirt-coschedule-certs-{secrets.token_hex(4)}"

    async def read(self) -> ClusterState:
        """Return the objects as they are now.

        The configuration is read first. So the Secrets, which decide what leaves the bundle, are at least as new.

        Raises:
            ApiError: an object could not be read, or there is no configuration.
        """
        configuration = await self._find(self._paths.configuration)
        if configuration is None:
            raise ApiError(
                f"MutatingWebhookConfiguration {self._paths.configuration.rpartition('/')[2]} does not exist; apply "
                "the manifests, or name the right one with --webhook-configuration"
            )
        return ClusterState(
            served=state.read_secret(await self._find(self._paths.served)),
            authority=state.read_secret(await self._find(self._paths.authority)),
            configuration=state.read_configuration(configuration),
        )

    async def write(self, step: Write, seen: ClusterState, policy: RotationPolicy, now: datetime) -> None:
        """Take a step that was planned from `seen`.

        Raises:
            Conflict: the object has changed since it was read.
            ApiError: the API server refused the change, or its answer did not arrive.
        """
        if isinstance(step, Publish):
            body = state.configuration_patch(seen.configuration, pki.pem(step.authorities))
            await self._patch(self._paths.configuration, body)
            return
        issues = isinstance(step, Issue)
        path, held = (self._paths.served, seen.served) if issues else (self._paths.authority, seen.authority)
        pair = plan.new_pair(step, policy, now)
        if held.version is None:
            # An apply instead of a POST: RBAC can permit a creation by name only if the name is in the path. If another
            # client has created the Secret meanwhile, this is a conflict.
            await self._patch(path, state.new_secret(path, pair), _APPLY, fieldManager=self._owner)
        else:
            await self._patch(path, state.secret_patch(held.version, pair))

    async def _find(self, path: str) -> Mapping[str, Any] | None:
        with _naming(f"GET {path}"):
            reply = await self._api.get(path, seconds=_ANSWER_SECONDS)
            if reply.status == HTTPStatus.NOT_FOUND:
                return None
            _check(reply)
            return _decoded(reply)

    async def _patch(self, path: str, body: Mapping[str, Any], content_type: str = _MERGE, **query: str) -> None:
        sent = self._api.patch(path, body, [*query.items()], content_type=content_type, seconds=_ANSWER_SECONDS)
        with _naming(f"PATCH {path}"):
            _check(await sent)


@asynccontextmanager
async def connect_objects(kubeconfig: Kubeconfig, paths: ObjectPaths) -> AsyncIterator[ClusterObjects]:
    """Open the objects with a new connection pool, which reads credentials and authorities again.

    Raises:
        BadKubeconfig: neither the kubeconfig nor the pod's service account can be used.
    """
    api = await Api.connect(kubeconfig, "kubevirt-coschedule-certs")
    try:
        yield ClusterObjects(api, paths)
    finally:
        await api.close()


@contextmanager
def _naming(what: str) -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        raise ApiError(f"{what}: {error}") from error


def _check(reply: Reply) -> None:
    if HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
        return
    if reply.status == HTTPStatus.CONFLICT:
        raise Conflict
    advice = "; apply manifests/install.yaml, which grants it" if reply.status == HTTPStatus.FORBIDDEN else ""
    raise ApiError(reply.failure.sentence + advice)


def _decoded(reply: Reply) -> dict[str, Any]:
    try:
        return msgspec.json.decode(reply.body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ApiError("got an answer that is not a JSON object") from error
