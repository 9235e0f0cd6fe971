"""Reads, watches and writes the two Secrets and the MutatingWebhookConfiguration of a live cluster.

Invariant: a write names the resourceVersion that it changes. Every failure is an ApiError, with one sentence that has
nothing secret in it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final, Self

import aiohttp
import msgspec
from kubernetes_asyncio.client.api_client import ApiClient
from msgspec import Struct

from certs.rotation import state
from certs.rotation.change import Change, SecretRole, WriteSecret
from certs.rotation.state import ClusterState
from certs.settings import ObjectNames
from webhook.component_base import api_client
from webhook.component_base.kubeconfig import Kubeconfig

_ANSWER_SECONDS: Final = 10.0
_WATCH_MARGIN_SECONDS: Final = 10.0  # after the time at which the API server ends a watch
_ENDED_EARLY_SECONDS: Final = 1.0  # the pause after a watch that ended without an event
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"


class ApiError(Exception):
    """A request to the API server failed; another attempt may succeed."""


class Conflict(Exception):
    """Another client has written the object since it was read."""


class ObjectPaths(Struct, frozen=True, kw_only=True):
    """The URL paths of the objects. `authority` is None for a reader that needs no key of an authority."""

    served: str
    authority: str | None
    configuration: str

    @classmethod
    def of(cls, names: ObjectNames, authority_secret: str | None = None) -> Self:
        """Return the paths of the objects that the settings name."""
        secrets = f"/api/v1/namespaces/{names.namespace}/secrets/"
        configurations = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/"
        return cls(
            served=secrets + names.secret,
            authority=secrets + authority_secret if authority_secret else None,
            configuration=configurations + names.webhook_configuration,
        )


class _Request(Struct, frozen=True):
    method: str
    path: str
    query: Mapping[str, str] = {}
    body: Mapping[str, Any] | None = None
    content_type: str = "application/json"
    seconds: float = _ANSWER_SECONDS


class ClusterObjects:
    """The objects of a cluster, through one connection pool."""

    def __init__(self, client: ApiClient, paths: ObjectPaths) -> None:
        self._client, self._paths = client, paths
        # Each process has its own field manager, so that its apply conflicts with another's instead of undoing it.
        self._owner = f"kubevirt-coschedule-certs-{secrets.token_hex(4)}"

    async def read(self) -> ClusterState:
        """Return the objects as they are now.

        The configuration is read first. So the Secrets, which decide what leaves the bundle, are at least as new.

        Raises:
            ApiError: an object could not be read, or there is no configuration.
        """
        configuration = await self.find(self._paths.configuration)
        if configuration is None:
            raise ApiError(
                f"MutatingWebhookConfiguration {self._paths.configuration.rpartition('/')[2]} does not exist; apply "
                "the manifests, or name the right one with --webhook-configuration"
            )
        served = await self.find(self._paths.served)
        authority = await self.find(self._paths.authority) if self._paths.authority else None
        return ClusterState(
            served=state.read_secret(served),
            authority=state.read_secret(authority),
            configuration=state.read_configuration(configuration),
        )

    async def write(self, change: Change) -> None:
        """Make one change.

        Raises:
            Conflict: the object has changed since it was read.
            ApiError: the API server refused the change, or its answer did not arrive.
        """
        if not isinstance(change, WriteSecret):
            await self._call(_Request("PATCH", self._paths.configuration, {}, change.body, _MERGE))
            return
        path = self._paths.served if change.secret is SecretRole.SERVED else self._paths.authority
        if path is None:
            raise ValueError("got an authority to write, expected a Secret for it")
        if change.version is None:
            # An apply instead of a POST: RBAC can permit a creation by name only if the name is in the path. If another
            # client has created the Secret meanwhile, this is a conflict.
            query = {"fieldManager": self._owner}
            await self._call(_Request("PATCH", path, query, state.new_secret(path, change.pair), _APPLY))
        else:
            await self._call(_Request("PATCH", path, {}, state.secret_patch(change.version, change.pair), _MERGE))

    async def changed(self, seen: ClusterState, at_most: timedelta) -> None:
        """Wait until one of the objects may differ from `seen`, or until `at_most` is over.

        Raises:
            ApiError: they can't be watched.
        """
        watched = [
            (path, version)
            for path, version in (
                (self._paths.configuration, seen.configuration.version),
                (self._paths.served, seen.served.version),
                (self._paths.authority, seen.authority.version),
            )
            if path and version
        ]
        seconds = max(at_most.total_seconds(), 0)
        tasks = [asyncio.create_task(self._event(path, version, seconds)) for path, version in watched]
        try:
            done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def find(self, path: str) -> Mapping[str, Any] | None:
        """Return the object at this URL path; None if it does not exist.

        Raises:
            ApiError: it could not be read.
        """
        return await self._call(_Request("GET", path))

    async def _event(self, path: str, version: str, seconds: float) -> None:
        """Wait for the first event after this version. Its content is not used, because the objects are read again."""
        collection, _, name = path.rpartition("/")
        query = {
            "watch": "1",
            "fieldSelector": f"metadata.name={name}",
            "resourceVersion": version,
            "timeoutSeconds": str(int(seconds) + 1),
        }
        asked = _Request("GET", collection, query, seconds=seconds + _WATCH_MARGIN_SECONDS)
        try:
            async with self._answer(asked) as answer:
                if answer.status != HTTPStatus.OK:
                    raise ApiError(_refusal("watch", path, answer.status, await answer.read()))
                if await answer.content.readline():
                    return
        except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: a line longer than aiohttp reads
            raise ApiError(f"watch {path}: {api_client.sentence(error)}") from error
        await asyncio.sleep(_ENDED_EARLY_SECONDS)

    async def _call(self, asked: _Request) -> dict[str, Any] | None:
        what = f"{asked.method} {asked.path}"
        try:
            async with self._answer(asked) as answer:
                status, text = answer.status, await answer.read()
        except (aiohttp.ClientError, OSError) as error:
            raise ApiError(f"{what}: {api_client.sentence(error)}") from error
        if status == HTTPStatus.CONFLICT:
            raise Conflict
        if status == HTTPStatus.NOT_FOUND and asked.method == "GET":
            return None
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise ApiError(_refusal(asked.method, asked.path, status, text))
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise ApiError(f"{what}: got an answer that is not a JSON object") from error

    @asynccontextmanager
    async def _answer(self, asked: _Request) -> AsyncIterator[aiohttp.ClientResponse]:
        answer: aiohttp.ClientResponse = await self._client.call_api(
            asked.path,
            asked.method,
            query_params=list(asked.query.items()),
            header_params={"Accept": "application/json", "Content-Type": asked.content_type},
            body=asked.body,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _request_timeout=aiohttp.ClientTimeout(total=asked.seconds),
        )
        async with answer:
            yield answer


@asynccontextmanager
async def connect_objects(kubeconfig: Kubeconfig, paths: ObjectPaths) -> AsyncIterator[ClusterObjects]:
    """Open the objects with a new connection pool, which reads credentials and authorities again.

    Raises:
        BadKubeconfig: neither the kubeconfig nor the pod's service account can be used.
    """
    configuration, _ = await api_client.load_kubeconfig(kubeconfig)
    client = api_client.open_client(configuration, "kubevirt-coschedule-certs")
    try:
        yield ClusterObjects(client, paths)
    finally:
        await client.close()


def _refusal(verb: str, path: str, status: int, text: bytes) -> str:
    try:
        message = msgspec.json.decode(text, type=dict[str, Any]).get("message")
    except msgspec.DecodeError:
        message = None
    advice = "; apply manifests/certs, which grants it" if status == HTTPStatus.FORBIDDEN else ""
    return f"{verb} {path}: {status} {ascii(str(message or HTTPStatus(status).phrase)[:300])[1:-1]}{advice}"
