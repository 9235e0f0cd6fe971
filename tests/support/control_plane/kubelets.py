"""What kubelets do with a Secret that pods mount: copy it into each pod's volume, some time after it was written."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from support.control_plane.kube_api import Api, Object
from support.control_plane.mounted import Mounted
from support.repeated_step import RepeatedStep

FILES: Final = ("tls.crt", "tls.key")  # as the Deployment names them; while one is missing a pod waits for both
_LOOK_SECONDS: Final = 0.1


class _Written(NamedTuple):
    at: float
    version: str
    payload: Mapping[str, bytes]


class Kubelets(RepeatedStep):
    """A context manager: a volume for each of `lags`, which shows what the Secret held so many seconds ago."""

    def __init__(self, api: Api, secret: Object, directory: Path, lags: Sequence[float]) -> None:
        super().__init__(_LOOK_SECONDS)
        self._api = Api(api.url, api.token, api._trust)  # its connection is ours alone
        self._secret, self._lags = secret, lags
        self.volumes = [Mounted(directory / f"volume-{index}") for index in range(len(lags))]
        self._shown = [""] * len(lags)
        self._written: list[_Written] = []

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._api.forget_connections()

    def step(self) -> None:
        """Read the Secret, and write into each volume what the Secret held `lag` seconds ago."""
        written = self._written
        found = self._api.find(self._secret)
        data = (found or {}).get("data") or {}
        if found and set(FILES) <= data.keys():
            payload = {name: base64.b64decode(data[name]) for name in FILES}
            if not written or written[-1].payload != payload:
                written.append(_Written(time.monotonic(), found["metadata"]["resourceVersion"], payload))
        for index, lag in enumerate(self._lags):
            due = [each for each in written if each.at + lag <= time.monotonic()]
            if due and due[-1].version != self._shown[index]:
                self.volumes[index].put(due[-1].payload)
                self._shown[index] = due[-1].version
