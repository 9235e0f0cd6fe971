"""Servers in place of the webhook that fail: silent, with a wrong name, or with invalid answers; and another webhook.

The other one changes pods. If the API server calls it after ours, the API server asks us again.
"""

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
from support.control_plane.installed import Installed, free_port
from support.control_plane.kube_api import Object
from support.objects import builders
from support.objects.patches import add
from support.scenarios.admitting import until

from webhook.core.patch.decision_patch import Operation


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


_HOST: Final = "127.0.0.3"  # the API server speaks HTTP/2 to 127.0.0.1
_PROBE: Final = "probed"


LATER: Final = "zz-later"  # sorts after ours; the API server calls configurations in the order of their names
EARLIER: Final = "aa-earlier"


class Later:
    """A webhook that changes pods only inside `doing`."""

    def __init__(self) -> None:
        self._operations: Sequence[Operation] = ()

    def answer(self, uid: str) -> HttpAnswer:
        """What it answers to any review."""
        return patched(uid, self._operations) if self._operations else reviewed(uid)

    @contextmanager
    def doing(self, operation: Operation) -> Iterator[None]:
        """For as long as this lasts it does this to every pod that is created."""
        self._operations = [operation]
        try:
            yield
        finally:
            self._operations = ()


@contextmanager
def later_webhook(installed: Installed, name: str = LATER) -> Iterator[Later]:
    """It is called from here on, for every pod, and no more afterwards. `name` is that of its configuration."""
    api, later, port = installed.plane.api, Later(), free_port(_HOST)
    configuration = _configuration(installed, f"https://{_HOST}:{port}/", name)

    def called() -> bool:
        with later.doing(add(f"/metadata/annotations/{_PROBE}", "")):
            probe = api.create(builders.virt_launcher_pod(namespace=builders.NAMESPACE), dryRun="All")
        return _PROBE in probe["metadata"]["annotations"]

    with webhook_server(_HOST, port, installed.authority.issue_cert(_HOST), later.answer):
        api.apply(configuration)
        try:
            until(called, "a call of the later webhook")
            yield later
        finally:
            api.delete(configuration)
            until(lambda: not called(), "the end of the later webhook's calls")


def _configuration(installed: Installed, url: str, name: str) -> Object:
    """A call that fails refuses the pod, so that no test passes without the webhook."""
    authority = base64.b64encode(installed.authority.cert_pem.bytes()).decode()
    entry = {
        "name": "later.example.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": url, "caBundle": authority},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    return {**kind, "metadata": {"name": name}, "webhooks": [entry]}
