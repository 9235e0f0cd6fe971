"""The Secret and the MutatingWebhookConfiguration of a live cluster: read, watched, written; nothing else is asked for.

Invariant: a write names the resourceVersion that it is for. Whatever goes wrong on the way is a Trouble, a sentence
without anything secret.
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
from certs.rotation.change import Change, CreateSecret, PatchConfiguration, PatchSecret
from certs.rotation.state import State
from certs.settings import Kept
from webhook.component_base import api_client
from webhook.component_base.kubeconfig import Kubeconfig

_ANSWER_SECONDS: Final = 10.0
_WATCH_MARGIN_SECONDS: Final = 10.0  # beyond the time that the API server was asked to end a watch at
_ENDED_EARLY_SECONDS: Final = 1.0  # a watch that ends at once is not asked for again at once
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"


class ApiError(Exception):
    """What was asked can't be had now; trying again may help."""


class Conflict(Exception):
    """Somebody has written since this was read."""


class Places(Struct, frozen=True, kw_only=True):
    """Where the two objects are."""

    namespace: str
    secret: str
    configuration: str

    @classmethod
    def of(cls, kept: Kept) -> Self:
        """As the settings name them."""
        return cls(namespace=kept.namespace, secret=kept.secret, configuration=kept.webhook_configuration)

    @property
    def secret_path(self) -> str:
        """The Secret's path."""
        return f"/api/v1/namespaces/{self.namespace}/secrets/{self.secret}"

    @property
    def configuration_path(self) -> str:
        """The configuration's path."""
        return f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{self.configuration}"


class _Request(Struct, frozen=True):
    method: str
    path: str
    query: Mapping[str, str] = {}
    body: Mapping[str, Any] | None = None
    content_type: str = "application/json"
    seconds: float = _ANSWER_SECONDS


class Cluster:
    """Both objects, through one connection pool."""

    def __init__(self, client: ApiClient, places: Places) -> None:
        self._client, self._places = client, places
        # A name of its own for each keeper: an apply then conflicts with another keeper's, where it would undo it.
        self._manager = f"kubevirt-coschedule-certs-{secrets.token_hex(4)}"

    async def read(self) -> State:
        """Both as they are now. The configuration first: what leaves the bundle is judged by a Secret at least as new.

        Raises:
            Trouble: one could not be read, or there is no configuration.
        """
        configuration = await self.find(self._places.configuration_path)
        if configuration is None:
            raise ApiError(
                f"MutatingWebhookConfiguration {self._places.configuration} is not there; apply the manifests, or name "
                "the right one with --webhook-configuration"
            )
        secret = await self.find(self._places.secret_path)
        return State(state.read_secret(secret) if secret else None, state.read_configuration(configuration))

    async def write(self, change: Change) -> None:
        """Make one change.

        Raises:
            Conflict: the object is not as it was read.
            Trouble: it was refused, or nobody knows whether it was made.
        """
        if isinstance(change, CreateSecret):
            empty = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": self._places.secret, "namespace": self._places.namespace},
                "type": "Opaque",
            }
            # An apply and no POST: RBAC can grant a creation by name only where the name is in the path.
            query = {"fieldManager": self._manager}
            await self._call(_Request("PATCH", self._places.secret_path, query, empty, _APPLY))
        elif isinstance(change, PatchSecret):
            await self._call(_Request("PATCH", self._places.secret_path, {}, change.body, _MERGE))
        elif isinstance(change, PatchConfiguration):
            await self._call(_Request("PATCH", self._places.configuration_path, {}, change.body, _MERGE))

    async def changed(self, seen: State, at_most: timedelta) -> None:
        """Wait until one of the two may be another than was seen.

        Raises:
            Trouble: they can't be watched.
        """
        watched = [(self._places.configuration_path, seen.configuration.version)]
        if seen.secret:
            watched.append((self._places.secret_path, seen.secret.version))
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
        """An object by its path; None where there is none.

        Raises:
            Trouble: it could not be read.
        """
        return await self._call(_Request("GET", path))

    async def _event(self, path: str, version: str, seconds: float) -> None:
        """Wait for the first event after that version. Its content does not matter: everything is read again."""
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
        except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: a line beyond all bounds
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
            raise ApiError(f"{what}: got an answer that is no JSON object") from error

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
async def connect(kubeconfig: Kubeconfig, places: Places) -> AsyncIterator[Cluster]:
    """The cluster, by a connection pool of its own: credentials and authorities are read anew.

    Raises:
        BadKubeconfig: there is no way to an API server.
    """
    configuration, _ = await api_client.load_kubeconfig(kubeconfig)
    client = api_client.open_client(configuration, "kubevirt-coschedule-certs")
    try:
        yield Cluster(client, places)
    finally:
        await client.close()


def _refusal(verb: str, path: str, status: int, text: bytes) -> str:
    try:
        told = msgspec.json.decode(text, type=dict[str, Any]).get("message")
    except msgspec.DecodeError:
        told = None
    advice = "; apply manifests/certs, which grants it" if status == HTTPStatus.FORBIDDEN else ""
    return f"{verb} {path}: {status} {ascii(str(told or HTTPStatus(status).phrase)[:300])[1:-1]}{advice}"
