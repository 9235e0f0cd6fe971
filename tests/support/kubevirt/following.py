"""A thread that follows the objects of one kind, and does something at each change."""

from __future__ import annotations

import http.client
import threading
import traceback
from collections.abc import Callable
from typing import Final

from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api, Object

_SECONDS: Final = 1  # of one watch: so long `end` can take
_OUTDATED: Final = (http.client.NOT_FOUND, http.client.CONFLICT)


class Follower(threading.Thread):
    """Calls `act` with each object that is there, and at each change: with what is deleted as it last was, and `gone`.

    An object that another has changed meanwhile is left: its next change is on the way. `failures` are other errors.
    """

    def __init__(self, api: Api, api_version: str, kind: str, act: Callable[..., object], **parameters: str) -> None:
        super().__init__(name=f"follows {kind}", daemon=True)
        self.api = Api(api.url, api.token, api._trust)  # its connections are its own
        self.failures: list[str] = []
        self._kind, self._act, self._parameters = (api_version, kind), act, parameters
        self._over = threading.Event()

    def end(self) -> None:
        """Have it end, and wait for that."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """Follow the objects until the end."""
        try:
            while not self._over.is_set():
                self._follow()
        except Exception:  # noqa: BLE001 - of a thread, told to the test
            self.failures.append(traceback.format_exc())
        finally:
            self.api.forget_connections()

    def _follow(self) -> None:
        version, kind = self._kind
        listed = self.api.call("GET", self.api._all(version, kind, None), None, self._parameters).body
        for each in listed["items"]:
            self._step({"apiVersion": version, "kind": kind, **each}, gone=False)
        at = listed["metadata"]["resourceVersion"]
        while not self._over.is_set():
            for event in self.api.watch(version, kind, seconds=_SECONDS, **self._parameters, resourceVersion=at):
                if event["type"] == "ERROR":
                    return  # the version is too old: list again
                at = event["object"]["metadata"]["resourceVersion"]
                self._step(event["object"], gone=event["type"] == "DELETED")

    def _step(self, found: Object, *, gone: bool) -> None:
        try:
            self._act(found, gone=gone)
        except ApiError as error:
            if error.status not in _OUTDATED:
                self.failures.append(str(error))
