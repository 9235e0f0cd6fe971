"""The requests that `reunite` writes, and their results: migrations are created and deleted, the pods of VMs deleted.

Invariant: a name that exists is never created again, and an object that changed since it was read is never deleted.
"""

from __future__ import annotations

from collections.abc import Container
from enum import Enum
from typing import Any, Final

import msgspec
from msgspec import Struct

from webhook.component_base.client.api import Api, Reply
from webhook.component_base.client.errors import ApiError
from webhook.core.reunite.decide import DeleteMigration
from webhook.kube import reader

_WRITE_SECONDS: Final = 10.0
_CREATED: Final = 201
_DELETED: Final = (200, 202)
_GONE: Final = 404
_SERVER_ERRORS: Final = 500


class Result(Enum):
    """What came of one request."""

    DONE = "done"
    REFUSED = "refused"  # by the API server or KubeVirt: such a migration exists, or it changed meanwhile
    UNKNOWN = "unknown"  # no answer, or a server error: it may have been carried out


class Written(Struct, frozen=True, kw_only=True):
    """The result of one request. `uid`: of the migration that was created. `because`: why it was not done."""

    result: Result
    uid: str = ""
    because: str = ""


class MigrationWriter:
    """Writes at one API server."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def create(self, namespace: str, migration: dict[str, Any]) -> Written:
        """POST this migration. KubeVirt refuses it while another migration of the VM is not final."""
        try:
            reply = await self._api.post(_path(namespace), migration, seconds=_WRITE_SECONDS)
        except ApiError as problem:
            return Written(result=Result.UNKNOWN, because=str(problem))
        if reply.status == _CREATED:
            return Written(result=Result.DONE, uid=_uid(reply))
        return _not_done(reply)

    async def delete(self, action: DeleteMigration) -> Written:
        """DELETE this migration, if it is as it was read."""
        migration = action.migration
        path = f"{_path(migration.namespace)}/{reader.name(migration.name)}"
        return await delete(self._api, path, migration.uid, migration.resource_version, done=(*_DELETED, _GONE))


async def delete(api: Api, path: str, uid: str, resource_version: str, *, done: Container[int] = _DELETED) -> Written:
    """DELETE this object, if it is as it was read. `done`: the HTTP statuses after which it is deleted."""
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    try:
        reply = await api.delete(path, {"preconditions": preconditions}, seconds=_WRITE_SECONDS)
    except ApiError as problem:
        return Written(result=Result.UNKNOWN, because=str(problem))
    return Written(result=Result.DONE) if reply.status in done else _not_done(reply)


def _path(namespace: str) -> str:
    return f"/apis/kubevirt.io/v1/{reader.within(namespace)}/virtualmachineinstancemigrations"


def _uid(reply: Reply) -> str:
    found: dict[str, Any] = msgspec.json.decode(reply.body, type=dict[str, Any])
    return str((found.get("metadata") or {}).get("uid") or "")


def _not_done(reply: Reply) -> Written:
    result = Result.UNKNOWN if reply.status >= _SERVER_ERRORS else Result.REFUSED
    return Written(result=result, because=reply.failure.sentence)
