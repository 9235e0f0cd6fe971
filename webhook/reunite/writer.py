"""The requests that a run of `reunite` writes, and their results.

Invariants: a name that exists is never created again. A field that the API server does not know is an error, so that no
migration loses the node that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from webhook.component_base.client.api import Api, Reply
from webhook.component_base.client.transport import ApiError
from webhook.core.observe.events import Event
from webhook.kube import reader
from webhook.kube.events import v1_event
from webhook.objects.kinds import EVENT, MIGRATION

_WRITE_SECONDS: Final = 10.0
_DONE: Final = (200, 201, 202)
_CONFLICT: Final = 409
_SERVER_ERRORS: Final = 500


class Result(Enum):
    """What came of one request."""

    DONE = "done"
    EXISTS = "exists"  # another run has created it
    REFUSED = "refused"  # by the API server or KubeVirt
    UNKNOWN = "unknown"  # no answer, or a server error: it may have been carried out


class Written(Struct, frozen=True):
    """The result of one request. `because`: why it was not done. `lacks_right`: the account has no right to it."""

    result: Result
    because: str = ""
    lacks_right: bool = False


class Writer:
    """Writes at one API server. With `dry_run` it only checks what is created; Events are written."""

    def __init__(self, api: Api, *, dry_run: bool = False) -> None:
        self._api = api
        self._query = "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")

    async def create(self, namespace: str, migration: Mapping[str, Any]) -> Written:
        """POST this migration. KubeVirt refuses it while another migration of the VM is not final."""
        return await self._post(MIGRATION.path(reader.within(namespace), "") + self._query, migration)

    async def write_event(self, event: Event, at: float) -> Written:
        """POST an Event of the time `at` (seconds since 1970)."""
        return await self._post(EVENT.path(reader.within(event.namespace), ""), v1_event(event, at))

    async def _post(self, path: str, new: Mapping[str, Any]) -> Written:
        try:
            return _written(await self._api.post(path, new, seconds=_WRITE_SECONDS))
        except ApiError as problem:
            return Written(Result.UNKNOWN, str(problem))


def _written(reply: Reply) -> Written:
    if reply.status in _DONE:
        return Written(Result.DONE)
    if reply.status >= _SERVER_ERRORS:
        return Written(Result.UNKNOWN, reply.failure.sentence)
    refused = Result.EXISTS if reply.status == _CONFLICT else Result.REFUSED
    return Written(refused, reply.failure.sentence, reply.failure.lacks_right)
