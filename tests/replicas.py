"""Two `serve` processes behind the Service's address, as the pods of a Deployment are behind kube-proxy."""

from __future__ import annotations

import http.client
import signal
import threading
from contextlib import ExitStack, closing
from typing import Final, NamedTuple, Self

from installed import Installed
from proxy import Address, Proxy
from serving import Serving

REPLICAS: Final = 2
_HOST: Final = "127.0.0.2"
_PROBE_SECONDS: Final = 0.5
_PATIENCE_SECONDS: Final = 60.0


class _Replica(NamedTuple):
    serving: Serving
    files: ExitStack

    @property
    def address(self) -> Address:
        return Address(_HOST, self.serving.port)

    @property
    def ready(self) -> bool:
        """What a kubelet's probe says."""
        where = http.client.HTTPConnection("127.0.0.1", self.serving.health_port, timeout=_PATIENCE_SECONDS)
        try:
            with closing(where) as probe:
                probe.request("GET", "/readyz")
                return probe.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False


class Replicas:
    """A context manager. New connections to the Service go to replicas whose last probe was good.

    To the first of them, as the Service's session affinity has it for a single API server; or without it in turn.
    Between two probes nobody hears of a replica that goes, as it is between kubelet, EndpointSlice and kube-proxy; and
    connections that are there stay where they are.
    """

    def __init__(self, installed: Installed, *flags: str, in_turn: bool = False) -> None:
        self._installed, self._flags, self._in_turn = installed, flags, in_turn
        self._serving: list[_Replica] = []  # the oldest first
        self._ending: list[_Replica] = []
        self._ready = 0
        self._proxy = Proxy(host=installed.address, port=installed.port)
        self._prober = threading.Thread(target=self._probe)
        self._over = threading.Event()
        self._probed = threading.Condition()

    def __enter__(self) -> Self:
        for _ in range(REPLICAS):
            self._start()
        self._look()
        self._proxy.__enter__()
        self._prober.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._prober.join()
        self._proxy.__exit__()
        for replica in [*self._ending, *self._serving]:
            replica.files.close()

    @property
    def health_ports(self) -> list[int]:
        """Of those that are not ending."""
        return [each.serving.health_port for each in self._serving]

    def replace_oldest(self, how: signal.Signals) -> None:
        """A step of the Deployment's rollout (maxSurge 1, maxUnavailable 0): one more, and then this signal for one."""
        self._start()
        with self._probed:
            for _ in range(2):  # one may be under way
                assert self._probed.wait(_PATIENCE_SECONDS)
        self.end_oldest(how)

    def end_oldest(self, how: signal.Signals) -> None:
        """Send this signal to the one that has served for longest."""
        oldest = self._serving.pop(0)
        self._ending.append(oldest)
        oldest.serving.signal(how)

    def until_all_ready(self) -> None:
        """Wait until that is known of all of them."""
        with self._probed:
            assert self._probed.wait_for(lambda: self._ready == len(self._serving), _PATIENCE_SECONDS)

    def until_ended(self) -> list[int]:
        """Wait for all that were sent a signal. Returns their exit codes."""
        codes = [each.serving.process.wait(_PATIENCE_SECONDS) for each in self._ending]
        for each in self._ending:
            each.files.close()
        self._ending.clear()
        return codes

    def _start(self) -> None:
        files = ExitStack()
        serving = files.enter_context(self._installed.serving(*self._flags, listen=f"{_HOST}:0"))
        self._serving.append(_Replica(serving, files))

    def _probe(self) -> None:
        while not self._over.wait(_PROBE_SECONDS):
            self._look()
            with self._probed:
                self._probed.notify_all()

    def _look(self) -> None:
        """What kube-proxy comes to know: every pod is probed, one that is ending too."""
        pods = [*self._ending, *self._serving]
        ready = tuple(pod.address for pod in pods if pod.ready)
        self._ready = len(ready)
        self._proxy.targets = ready[: None if self._in_turn else 1] or self._proxy.targets
