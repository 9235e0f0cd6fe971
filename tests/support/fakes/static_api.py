"""An API server that is a dict of objects: GET and LIST (pages, selectors) over plain HTTP on loopback.

    with StaticApi(objects) as api:             # api.url; api.kubeconfig(file)
        api.refuse("/api/v1/nodes", 403, "...") # that path and all below it

It answers what a program may read and nothing else; `asked` has the paths in their order.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

import yaml
from support.models.model_api import status

Object = Mapping[str, Any]

_CLUSTER_WIDE: Final = {
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("v1", "PersistentVolume"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
}


class _Answer(NamedTuple):
    status: int
    body: bytes


class StaticApi:
    """The server, in a thread of its own from `with` to its end."""

    def __init__(self, objects: Iterable[Object], *, installed: Iterable[str] = ("kubevirt.io", "longhorn.io")) -> None:
        """`installed` are the API groups of the cluster, beside the core group."""
        self.objects = {_path_of(value): dict(value) for value in objects}
        self.asked: list[str] = []
        self._installed = {"", "storage.k8s.io", *installed}
        self._refused: dict[str, _Answer] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.origin = f"context tests, {self.url}"  # as explain calls the cluster of the kubeconfig

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def refuse(self, path: str, code: int, message: str = "", *, body: bytes | None = None) -> None:
        """Answer with this error from now on: at `path`, at all paths below it, and with any query."""
        reason = HTTPStatus(code).phrase.replace(" ", "")
        self._refused[path] = _Answer(code, body if body is not None else _json(status(code, reason, message)))

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

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answer = self._answer

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet: in two, each answer waits for a delayed ACK

            def do_GET(self) -> None:
                found = answer(self.path)
                self.send_response(found.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(found.body)))
                self.end_headers()
                self.wfile.write(found.body)

            def log_message(self, *_: object) -> None:
                """Print nothing, because the output belongs to the test."""

        return Handler

    def _answer(self, target: str) -> _Answer:
        self.asked.append(target)
        parts = urlsplit(target)
        for path, refusal in self._refused.items():
            if parts.path == path or parts.path.startswith(f"{path}/"):
                return refusal
        if parts.path == "/version":
            return _Answer(200, b'{"major": "1", "minor": "36"}')
        if parts.path in self.objects:
            return _Answer(200, _json(self.objects[parts.path]))
        group = parts.path.split("/")[2] if parts.path.startswith("/apis/") else ""
        if group not in self._installed:
            return _Answer(404, b"404 page not found\n")
        *above, last = parts.path.split("/")
        if last in {path.split("/")[-2] for path in self.objects} | {
            "nodes",
            "pods",
            "persistentvolumeclaims",
            "namespaces",
        }:
            return self._page(parts.path, {key: values[0] for key, values in parse_qs(parts.query).items()})
        missing = status(404, "NotFound", f'{above[-1]} "{last}" not found')
        return _Answer(404, _json({**missing, "details": {"name": last, "kind": above[-1]}}))

    def _page(self, collection: str, query: Mapping[str, str]) -> _Answer:
        found = [
            value
            for path, value in sorted(self.objects.items())
            if collection in _collections(path) and _selected(value, query)
        ]
        start, limit = int(query.get("continue", "0")), int(query.get("limit", "500"))
        end = start + limit
        metadata = {"resourceVersion": "7", "continue": str(end) if end < len(found) else ""}
        return _Answer(
            200, _json({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": found[start:end]})
        )


def _path_of(value: Object) -> str:
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
