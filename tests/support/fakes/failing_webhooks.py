"""Servers in place of the webhook that fail: silent, with a wrong name, or with invalid answers."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

import trustme


class HttpAnswer(NamedTuple):
    """An HTTP answer."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"


Answer = Callable[[str], HttpAnswer | None]
"""The uid of the request -> the answer; None for no answer."""


def reviewed(uid: str, **response: Any) -> HttpAnswer:
    """Return an AdmissionReview with a valid answer, except for the fields of `response`."""
    answer = {"uid": uid, "allowed": True, **response}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
    return HttpAnswer(json.dumps(review).encode())


def patched(uid: str, operations: Sequence[Any] | bytes, **response: Any) -> HttpAnswer:
    """As `reviewed`, with a patch: operations, or bytes in their place."""
    text = operations if isinstance(operations, bytes) else json.dumps(operations).encode()
    return reviewed(uid, patch=base64.b64encode(text).decode(), patchType="JSONPatch", **response)


@contextmanager
def silent_listener(host: str, port: int) -> Iterator[None]:
    """A listener that accepts connections, and never starts TLS."""
    with socket.create_server((host, port)):
        yield


@contextmanager
def webhook_server(host: str, port: int, certificate: trustme.LeafCert, answer: Answer) -> Iterator[None]:
    """Run an HTTPS server with this certificate that answers each POST by `answer`."""
    over = threading.Event()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    handler = type("Handler", (_Handler,), {"answer": staticmethod(answer), "over": over})
    server = _Server((host, port), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": _POLL_SECONDS})
    thread.start()
    try:
        yield
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()


_POLL_SECONDS: Final = 0.02
_IDLE_SECONDS: Final = 30.0


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error: some tests need a handshake that fails."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _IDLE_SECONDS
    answer: Answer
    over: threading.Event

    def do_POST(self) -> None:
        """Answer a review."""
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.answer(review["request"]["uid"])
        if answer is None:
            self.over.wait()
            return
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' signature
        """Log nothing."""
