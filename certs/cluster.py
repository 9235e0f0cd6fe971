"""Reads and writes the two Secrets and the MutatingWebhookConfiguration of a live cluster.

Invariant: a write names the resourceVersion that it changes. Every failure is an ApiError, with one sentence that has
nothing secret in it.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec

from certs import pki, plan, state
from certs.plan import Issue, Publish, RotationPolicy, Write
from certs.settings import ControllerSettings
from certs.state import ClusterState, Secret
from webhook.component_base.client.api import Api, Reply
from webhook.component_base.client.transport import UNDECODABLE, ApiError

_T = TypeVar("_T")
_ANSWER_SECONDS: Final = 10.0
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"


class Conflict(ApiError):
    """409: another client has written the object since it was read, or a webhook of others answers so."""


class ClusterObjects:
    """The objects of a cluster, through one connection pool."""

    def __init__(self, api: Api, names: ControllerSettings) -> None:
        """Take the API server, and the settings that name the objects."""
        self._api = api
        secrets_path = f"/api/v1/namespaces/{names.namespace}/secrets"
        configurations = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        self._served = f"{secrets_path}/{names.secret}"
        self._authority = f"{secrets_path}/{names.authority_secret}"
        self._configuration = f"{configurations}/{names.webhook_configuration}"
        # Each process has its own field manager, so that its apply conflicts with another's instead of undoing it.
        self._owner = f"kubevirt-coschedule-certs-{secrets.token_hex(4)}"

    async def read(self) -> ClusterState:
        """Return the objects as they are now.

        The configuration is read first. So the Secrets, which decide what leaves the bundle, are at least as new.

        Raises:
            ApiError: an object could not be read, or there is no configuration.
        """
        configuration = await self._find(self._configuration, state.read_configuration)
        if configuration is None:
            raise ApiError(
                f"MutatingWebhookConfiguration {self._configuration.rpartition('/')[2]} does not exist; apply "
                "the manifests, or name the right one with --webhook-configuration"
            )
        return ClusterState(
            served=await self._find(self._served, state.read_secret) or Secret(),
            authority=await self._find(self._authority, state.read_secret) or Secret(),
            configuration=configuration,
        )

    async def write(self, step: Write, seen: ClusterState, policy: RotationPolicy, now: datetime) -> None:
        """Take a step that was planned from `seen`.

        Raises:
            Conflict: the object has changed since it was read.
            ApiError: the API server refused the change, or its answer did not arrive.
        """
        if isinstance(step, Publish):
            body = state.configuration_patch(seen.configuration, pki.pem(step.authorities))
            await self._patch(self._configuration, body)
            return
        issues = isinstance(step, Issue)
        path, held = (self._served, seen.served) if issues else (self._authority, seen.authority)
        pair = plan.new_pair(step, policy, now)
        if held.version is None:
            # An apply instead of a POST: RBAC can permit a creation by name only if the name is in the path. If another
            # client has created the Secret meanwhile, this is a conflict.
            await self._patch(path, state.new_secret(path, pair), _APPLY, fieldManager=self._owner)
        else:
            await self._patch(path, state.secret_patch(held.version, pair))

    async def _find(self, path: str, read: Callable[[Any], _T]) -> _T | None:
        what = f"GET {path}"
        reply = await _answer(what, self._api.get(path, seconds=_ANSWER_SECONDS), may_be_absent=True)
        if reply.status == HTTPStatus.NOT_FOUND:
            return None
        try:
            return read(msgspec.json.decode(reply.body))
        except UNDECODABLE as error:
            raise ApiError(f"{what}: got an answer that is not this object") from error

    async def _patch(self, path: str, body: Mapping[str, Any], content_type: str = _MERGE, **query: str) -> None:
        sent = self._api.patch(path, body, [*query.items()], content_type=content_type, seconds=_ANSWER_SECONDS)
        await _answer(f"PATCH {path}", sent)


async def _answer(what: str, sent: Awaitable[Reply], *, may_be_absent: bool = False) -> Reply:
    """Return the answer to a request that was carried out, or one that says that the object is absent."""
    try:
        reply = await sent
    except ApiError as error:
        raise ApiError(f"{what}: {error}") from error
    if reply.status == HTTPStatus.CONFLICT:
        raise Conflict(f"{what}: {reply.failure.sentence}")
    absent = may_be_absent and reply.status == HTTPStatus.NOT_FOUND
    if not absent and not HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
        failure = reply.failure
        granted = "; apply manifests/install.yaml, which grants it" if failure.lacks_right else ""
        raise ApiError(f"{what}: {failure.sentence}{granted}")
    return reply


@asynccontextmanager
async def connect_objects(settings: ControllerSettings) -> AsyncIterator[ClusterObjects]:
    """Open the objects with a new connection pool, which reads credentials and authorities again.

    Raises:
        BadKubeconfig: neither the kubeconfig nor the pod's service account can be used.
    """
    api = await Api.connect(settings.client_config, "kubevirt-coschedule-certs")
    try:
        yield ClusterObjects(api, settings)
    finally:
        await api.close()
