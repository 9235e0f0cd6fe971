"""A small, blocking Kubernetes client for tests: objects are plain dicts, and an error is the server's own message.

Thread-safe: each thread has a connection of its own, and connections are kept alive. It shares nothing with the
program under test. Where an object lies is asked of the API server's discovery, so custom resources work as any other.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from support.control_plane.kube_answers import Answer, ApiError, Sample, _unquoted, samples, summed
from support.control_plane.pod_owners import with_owners
from support.waits import MAX_WAIT_SECONDS

Object = dict[str, Any]

_IDLE_SECONDS: Final = 30.0  # a connection that was idle for longer is not trusted: an API server closes it after 90 s
_BUSY_TRIES: Final = 30  # 429 with Retry-After of a second: as a CRD's storage is being made, or an API server starts
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"


class Api:
    """The API server as one user sees it. Selectors and other parameters are Kubernetes' own (`labelSelector`)."""

    def __init__(self, url: str, token: str, trust: ssl.SSLContext) -> None:
        self.url, self.token = url, token
        self._trust = trust
        self._address = urlsplit(url).netloc
        self._mine = threading.local()
        self._opened: list[http.client.HTTPSConnection] = []
        self._places: dict[tuple[str, str], tuple[str, bool]] = {}
        self.owners: dict[str, str] = {}  # the uid of each owner of pods that is there: `with_owners`

    # Objects

    def create(self, new: Object, *, owned: bool = True, **parameters: str) -> Object:
        """As `create_warned`; `dryRun="All"` only tries to."""
        return self.create_warned(new, owned=owned, **parameters).body  # type: ignore[no-any-return]

    def create_warned(self, new: Object, *, owned: bool = True, **parameters: str) -> Answer:
        """Create it, and hear the warnings. The owners that a pod names are there, unless it is not to be `owned`."""
        return self.call("POST", self._collection(new), with_owners(self, new) if owned else new, parameters)

    def apply(self, wanted: Object) -> Object:
        """Create it or make it so (server-side apply), as `kubectl apply --server-side --force-conflicts` does."""
        forced = {"fieldManager": "tests", "force": "true"}
        return self.call("PATCH", self.path(wanted), wanted, forced, _APPLY).body  # type: ignore[no-any-return]

    def replace(self, wanted: Object, *, subresource: str = "") -> Object:
        """PUT it; a resourceVersion in it must still hold."""
        return self.call("PUT", self.path(wanted, subresource), wanted).body  # type: ignore[no-any-return]

    def replace_status(self, wanted: Object) -> Object:
        """PUT the status of an object that is there."""
        return self.replace(wanted, subresource="status")

    def patch(self, target: Object, change: Object, *, subresource: str = "", **parameters: str) -> Object:
        """A JSON merge patch of the object that `target` names."""
        patched: Object = self.call("PATCH", self.path(target, subresource), change, parameters, _MERGE).body
        return patched

    def get(self, target: Object, *, subresource: str = "") -> Object:
        """The object that `target` names."""
        found: Object = self.call("GET", self.path(target, subresource)).body
        return found

    def find(self, target: Object) -> Object | None:
        """As `get`, and None where there is no such object."""
        try:
            return self.get(target)
        except ApiError as error:
            if error.status != http.client.NOT_FOUND:
                raise
            return None

    def delete(self, target: Object, *, missing_ok: bool = False, **parameters: str) -> None:
        """Delete the object at once, without a grace period. A finalizer still delays its removal."""
        self.owners = self.owners if target["kind"] == "Pod" else {}
        try:
            self.call("DELETE", self.path(target), None, {"gracePeriodSeconds": "0", **parameters})
        except ApiError as error:
            if not (missing_ok and error.status == http.client.NOT_FOUND):
                raise

    def items(self, api_version: str, kind: str, namespace: str | None = None, **parameters: str) -> list[Object]:
        """Every object of a kind, in `namespace` if it is given."""
        items: list[Object] = self.call("GET", self._all(api_version, kind, namespace), None, parameters).body["items"]
        return [{"apiVersion": api_version, "kind": kind, **item} for item in items]

    def watch(
        self, api_version: str, kind: str, namespace: str | None = None, *, seconds: int, **parameters: str
    ) -> Generator[Object, None, None]:
        """Events as they come, for so long; without a resourceVersion what there is comes first, as ADDED.

        The connection is its own: close the generator to end it early.
        """
        parameters = {"watch": "1", "timeoutSeconds": str(seconds), **parameters}
        path = f"{self._all(api_version, kind, namespace)}?{urlencode(parameters)}"
        with closing(self._connect(timeout=seconds + MAX_WAIT_SECONDS)) as connection:
            connection.request("GET", path, headers=self._headers())
            response = connection.getresponse()
            if response.status != http.client.OK:
                raise ApiError("GET", path, response.status, response.read())
            for line in response:
                yield json.loads(line)

    def wait_for(
        self,
        target: Object,
        accept: Callable[[Object | None], bool],
        *,
        seconds: int = MAX_WAIT_SECONDS,
        what: str = "",
    ) -> Object | None:
        """The object as soon as `accept` takes it; None stands for its absence, before it is there and after.

        Each watch begins where a list ended: without that, a watch would never show what is removed before the watch.
        """
        version, kind, name = target["apiVersion"], target["kind"], target["metadata"]["name"]
        namespace, named = target["metadata"].get("namespace"), f"metadata.name={name}"
        deadline = time.monotonic() + seconds
        while True:
            listed = self.call("GET", self._all(version, kind, namespace), None, {"fieldSelector": named}).body
            found = next(({"apiVersion": version, "kind": kind, **item} for item in listed["items"]), None)
            if accept(found):
                return found
            if (left := int(deadline - time.monotonic())) <= 0:
                raise TimeoutError(f"{kind} {name}: not {what or 'as expected'} in {seconds} s; last seen: {found}")
            since = {"fieldSelector": named, "resourceVersion": listed["metadata"]["resourceVersion"]}
            with closing(self.watch(version, kind, namespace, seconds=left, **since)) as events:
                for event in events:
                    if event["type"] == "ERROR":
                        break  # the version is too old: list again
                    found = None if event["type"] == "DELETED" else event["object"]
                    if accept(found):
                        return found

    def request_token(self, namespace: str, service_account: str) -> str:
        """A token of a service account, by the TokenRequest API."""
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        token: str = self.call("POST", path, asked).body["status"]["token"]
        return token

    def text(self, path: str) -> str:
        """The answer of a path outside the API, such as /metrics or /readyz."""
        answer: str = self.call("GET", path, raw=True).body
        return answer

    def metric(self, name: str, /, **labels: str) -> float:
        """The sum of the API server's samples of a metric that carry these labels; 0 where there is none."""
        return summed(self.samples(name), name, **labels)

    def samples(self, prefix: str) -> list[Sample]:
        """The API server's samples of the metrics whose names begin so."""
        return samples(self.text("/metrics"), prefix)

    # HTTP

    def call(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        parameters: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        *,
        raw: bool = False,
    ) -> Answer:
        """One request and its JSON answer (`raw`: its text). A 429 that names a time is tried again then."""
        if parameters:
            path += f"?{urlencode(parameters)}"
        data = None if body is None else json.dumps(body).encode()
        for _ in range(_BUSY_TRIES):
            response, answer = self._exchange(method, path, data, content_type)
            busy = response.status == http.client.TOO_MANY_REQUESTS and response.getheader("Retry-After")
            if not busy:
                break
            threading.Event().wait(float(busy))
        if not http.client.OK <= response.status < http.client.MULTIPLE_CHOICES:
            raise ApiError(method, path, response.status, answer)
        warnings = [_unquoted(warning) for warning in response.headers.get_all("Warning", [])]
        return Answer(answer.decode() if raw else json.loads(answer), warnings)

    def forget_connections(self) -> None:
        """Close every connection; the next request opens a new one. No request may be under way."""
        for connection in self._opened:
            connection.close()

    def _exchange(
        self, method: str, path: str, data: bytes | None, content_type: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        if not hasattr(self._mine, "connection"):
            self._mine.connection = self._connect(timeout=MAX_WAIT_SECONDS)
            self._opened.append(self._mine.connection)
        connection: http.client.HTTPSConnection = self._mine.connection
        if time.monotonic() - getattr(self._mine, "used_at", 0.0) > _IDLE_SECONDS:
            connection.close()
        self._mine.used_at = time.monotonic()
        try:
            connection.request(method, path, data, self._headers() | {"Content-Type": content_type})
            response = connection.getresponse()
            return response, response.read()
        except BaseException:
            connection.close()  # what is half said is never continued
            raise

    def _connect(self, *, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._address, timeout=timeout, context=self._trust)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}

    # Places

    def path(self, target: Object, subresource: str = "") -> str:
        """Where the object that `target` names lies."""
        path = f"{self._collection(target)}/{target['metadata']['name']}"
        return f"{path}/{subresource}" if subresource else path

    def _collection(self, target: Object) -> str:
        return self._all(target["apiVersion"], target["kind"], target["metadata"].get("namespace", "default"))

    def _all(self, api_version: str, kind: str, namespace: str | None) -> str:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if (api_version, kind) not in self._places:
            for resource in self.call("GET", root).body["resources"]:
                if "/" not in resource["name"]:
                    self._places[api_version, resource["kind"]] = resource["name"], resource["namespaced"]
        plural, namespaced = self._places[api_version, kind]
        return f"{root}/namespaces/{namespace}/{plural}" if namespaced and namespace else f"{root}/{plural}"
