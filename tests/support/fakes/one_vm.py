"""An API server and caches in memory, for `StuckVMs`: GET and DELETE of single objects, and a whole cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from support.models.model_api import status

from webhook.component_base.client.api import Reply
from webhook.component_base.client.errors import ApiError
from webhook.core.view import Ref
from webhook.objects.manifests import Manifests

Object = dict[str, Any]


class Objects:
    """The part of client.Api that `StuckVMs` calls.

    Attributes:
        objects: by path.
        asked: the path of each GET.
        deleted: path and options of each DELETE.
        answer: what a DELETE gets: an HTTP status, or None for no answer.
    """

    def __init__(self, objects: Mapping[str, Object]) -> None:
        self.objects = dict(objects)
        self.asked: list[str] = []
        self.deleted: list[tuple[str, Mapping[str, Any]]] = []
        self.answer: int | None = 200

    async def get(self, path: str, query: Sequence[tuple[str, str]] = (), *, seconds: float) -> Reply:
        """As client.Api."""
        assert not query
        assert seconds > 0
        self.asked.append(path)
        if path in self.objects:
            return Reply(200, json.dumps(self.objects[path]).encode())
        missing = {**status(404, "NotFound", f"{path} not found"), "details": {"name": path}}
        return Reply(404, json.dumps(missing).encode())

    async def delete(self, path: str, options: Mapping[str, Any], *, seconds: float) -> Reply:
        """As client.Api."""
        assert seconds > 0
        self.deleted.append((path, options))
        if self.answer is None:
            raise ApiError("no answer in 10 s", silent=True)
        return Reply(self.answer, json.dumps(status(self.answer, "Conflict", "the object has been modified")).encode())


class ListedCluster:
    """The part of ClusterCache that `StuckVMs` calls. `late`: a view that lacks an object, before something is read."""

    def __init__(self, whole: Manifests, late: Any = None) -> None:
        self._whole, self._late = whole, late
        self.read_refs: list[Ref] = []

    def view(self) -> Any:
        """Return the cluster, or the view that lacks an object."""
        return self._late or self._whole

    async def read(self, view: Any, refs: Sequence[Ref], deadline: float, most: int | None = None) -> Any:  # noqa: ARG002 - it has read all
        """Return the cluster."""
        assert view is self._late
        assert deadline > 0
        self.read_refs += refs
        return self._whole
