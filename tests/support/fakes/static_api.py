"""An API server that is a dict of objects: GET and LIST (pages, selectors) over plain HTTP on loopback.

    with StaticApi(objects) as api:             # api.url; api.kubeconfig(file)
        api.refuse("/api/v1/nodes", 403, "...") # that path and all below it

It answers what a program may read and nothing else; `asked` has the paths in their order.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Self

import yaml
from support.fakes.api_server import ApiServer
from support.fakes.http_line import Asked, Line
from support.models.model_api import Answer, page, refusal, status
from support.waits import MAX_WAIT_SECONDS

Object = Mapping[str, Any]

_CLUSTER_WIDE: Final = {
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("v1", "PersistentVolume"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
}

_ALWAYS: Final = {"nodes", "pods", "persistentvolumeclaims", "namespaces"}  # these collections exist without objects


class StaticApi:
    """The server, in a thread of its own from `with` to its end."""

    def __init__(self, objects: Iterable[Object], *, installed: Iterable[str] = ("kubevirt.io", "longhorn.io")) -> None:
        """`installed` are the API groups of the cluster, beside the core group."""
        self.objects = {path_of(value): dict(value) for value in objects}
        self.asked: list[str] = []
        self._installed = {"", "storage.k8s.io", *installed}
        self._refused: dict[str, Answer] = {}
        self._loop = asyncio.new_event_loop()
        self._server = ApiServer(self._reply)
        self._thread = threading.Thread(target=self._loop.run_forever)
        self.url = self.origin = ""

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._server.__aenter__(), self._loop).result(MAX_WAIT_SECONDS)
        self.url = self._server.url
        self.origin = f"context tests, {self.url}"  # as explain calls the cluster of the kubeconfig
        return self

    def __exit__(self, *_: object) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._server.__aexit__(), self._loop).result(MAX_WAIT_SECONDS)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def refuse(self, path: str, code: int, message: str = "", *, body: bytes | None = None) -> None:
        """Answer with this error from now on: at `path`, at all paths below it, and with any query."""
        reason = HTTPStatus(code).phrase.replace(" ", "")
        self._refused[path] = refusal(code, reason, message) if body is None else Answer(code, body)

    def kubeconfig(self, file: Path, **context: str) -> Path:
        """A kubeconfig with the context `tests`, whose further fields are `context`, and the context `other`."""
        contexts = [
            {"name": "tests", "context": {"cluster": "here", "user": "me", **context}},
            {"name": "other", "context": {"cluster": "here", "user": "me", "namespace": "other"}},
        ]
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tests",
            "contexts": contexts,
            "clusters": [{"name": "here", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": {"token": "secret-token"}}],
        }
        file.write_text(yaml.safe_dump(content))
        return file

    async def _reply(self, asked: Asked, line: Line) -> None:
        self.asked.append(asked.target)
        await line.answer(*self._answer(asked.raw_path, asked.query))

    def _answer(self, path: str, query: Mapping[str, str]) -> Answer:
        for refused, answer in self._refused.items():
            if path == refused or path.startswith(f"{refused}/"):
                return answer
        if path == "/version":
            return Answer(200, b'{"major": "1", "minor": "36", "gitVersion": "v1.36.0"}')
        if path in self.objects:
            return Answer(200, _json(self.objects[path]))
        group = path.split("/")[2] if path.startswith("/apis/") else ""
        if group not in self._installed:
            return Answer(404, b"404 page not found\n")
        *above, last = path.split("/")
        if last in _ALWAYS | {each.split("/")[-2] for each in self.objects}:
            return self._page(path, query)
        missing = status(404, "NotFound", f'{above[-1]} "{last}" not found')
        return Answer(404, _json({**missing, "details": {"name": last, "kind": above[-1]}}))

    def _page(self, collection: str, query: Mapping[str, str]) -> Answer:
        found = [
            dict(value)
            for path, value in sorted(self.objects.items())
            if collection in _collections(path) and _selected(value, query)
        ]
        start, limit = int(query.get("continue", "0")), int(query.get("limit", "500"))
        end = start + limit
        return Answer(200, page(found[start:end], 7, str(end) if end < len(found) else ""))


def path_of(value: Object) -> str:
    """Return the path of an object at an API server."""
    version, kind, meta = value["apiVersion"], value["kind"], value["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    within = "" if (version, kind) in _CLUSTER_WIDE else f"/namespaces/{meta['namespace']}"
    plural = f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"
    return f"{root}{within}/{plural}/{meta['name']}"


def _collections(path: str) -> tuple[str, str]:
    """Return the paths of the object's collection in its namespace and in all namespaces."""
    within = path.rpartition("/")[0]
    before, _, namespaced = within.partition("/namespaces/")
    return within, f"{before}/{namespaced.partition('/')[2]}" if namespaced else within


def _selected(value: Object, query: Mapping[str, str]) -> bool:
    """Select by labels, and by the fields that the programs use: a node, a kind, and phases that are left out."""
    labels = value["metadata"].get("labels") or {}
    return all(_labelled(labels, wanted) for wanted in filter(None, query.get("labelSelector", "").split(","))) and all(
        _has(value, field) for field in filter(None, query.get("fieldSelector", "").split(","))
    )


def _labelled(labels: Mapping[str, str], wanted: str) -> bool:
    name, _, equal = wanted.partition("=")
    if not equal:
        return name in labels if not name.startswith("!") else name[1:] not in labels
    return labels.get(name) == equal


def _has(value: Object, selected: str) -> bool:
    field, unequal, wanted = selected.partition("!=") if "!=" in selected else selected.partition("=")
    assert field in ("spec.nodeName", "status.phase", "involvedObject.kind", "metadata.name"), selected
    above, _, name = field.partition(".")
    return ((value.get(above) or {}).get(name, "") == wanted) == (unequal == "=")


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
