"""Some `serve` processes behind the Service's address, as the pods of a Deployment are behind kube-proxy."""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import ExitStack
from enum import Enum
from http import HTTPStatus
from typing import Final, NamedTuple, Self

from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_api import Object
from support.drivers.serving import Client, Serving
from support.fakes.proxy import Address, Proxy
from support.repeated_step import RepeatedStep
from support.waits import MAX_WAIT_SECONDS

REPLICAS: Final = 2  # of manifests/install.yaml
SEED: Final = int(os.environ.get("REPLICAS_SEED", "1"))
_HOST: Final = "127.0.0.2"
_PROBE_SECONDS: Final = 0.5
_PROBE: Final = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Asked(Enum):
    """Whom an API server calls."""

    AT_RANDOM = "at random"  # a connection to any: kube-proxy, and kube-apiserver with --enable-aggregator-routing
    ONE = "one"  # all to the same, as long as it is ready


class _Replica(NamedTuple):
    serving: Serving
    files: ExitStack
    pod: Object

    @property
    def address(self) -> Address:
        return Address(_HOST, self.serving.port)

    @property
    def ready(self) -> bool:
        """What a kubelet's probe says."""
        try:
            with Client(self.serving.health_port) as probe:
                return probe.ask(_PROBE).status == HTTPStatus.OK
        except (OSError, EOFError):
            return False


class Replicas(RepeatedStep):
    """A context manager. New connections to the Service go to replicas whose last probe was good.

    Each has a pod in the API server, as the Deployment's have. Between two probes nobody hears of a replica that goes,
    as it is between kubelet, EndpointSlice and kube-proxy; and connections that are there stay where they are.
    """

    def __init__(
        self, installed: Installed, *flags: str, count: int = REPLICAS, asked: Asked = Asked.AT_RANDOM
    ) -> None:
        super().__init__(_PROBE_SECONDS)
        self._installed, self._flags, self._count, self._asked = installed, flags, count, asked
        self._replicas: list[_Replica] = []  # the oldest first
        self._ending: list[_Replica] = []
        self._ready = 0
        self._made = 0
        choose = random.Random(SEED).choice  # noqa: S311 - whom to ask
        self._proxy = Proxy(host=installed.address, port=installed.port, choose=choose)
        self._probed = threading.Condition()

    def __enter__(self) -> Self:
        for _ in range(self._count):
            self.start()
        self._look()
        self._proxy.__enter__()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._proxy.__exit__()
        for replica in [*self._ending, *self._replicas]:
            self._close(replica)

    @property
    def serving(self) -> list[Serving]:
        """Those that are not ending."""
        return [each.serving for each in self._replicas]

    def replace_oldest(self, how: signal.Signals) -> None:
        """A step of the Deployment's rollout (maxSurge 1, maxUnavailable 0): one more, and then this signal for one."""
        self.start()
        with self._probed:
            for _ in range(2):  # one may be under way
                assert self._probed.wait(MAX_WAIT_SECONDS)
        self.end_oldest(how)

    def end_oldest(self, how: signal.Signals) -> None:
        """Send this signal to the one that has served for longest."""
        oldest = self._replicas.pop(0)
        self._ending.append(oldest)
        oldest.serving.signal(how)

    def until_all_ready(self) -> None:
        """Wait until that is known of all of them."""
        with self._probed:
            assert self._probed.wait_for(lambda: self._ready == len(self._replicas), MAX_WAIT_SECONDS)

    def until_ended(self) -> list[int]:
        """Wait for all that were sent a signal. Returns their exit codes."""
        codes = [each.serving.process.wait(MAX_WAIT_SECONDS) for each in self._ending]
        for each in self._ending:
            self._close(each)
        self._ending.clear()
        return codes

    def start(self) -> None:
        """One more, which is called from its first good probe on."""
        self._made += 1
        pod = self._installed.plane.api.create(_pod(self._installed, f"{NAME}-{self._made}"))
        files = ExitStack()
        serving = files.enter_context(self._installed.serving(*self._flags, listen=f"{_HOST}:0"))
        self._replicas.append(_Replica(serving, files, pod))

    def _close(self, replica: _Replica) -> None:
        replica.files.close()
        self._installed.plane.api.delete(replica.pod, missing_ok=True)

    def step(self) -> None:
        """Probe each, and let the proxy know."""
        self._look()
        with self._probed:
            self._probed.notify_all()

    def _look(self) -> None:
        """What kube-proxy comes to know: every pod is probed, one that is ending too."""
        pods = [*self._ending, *self._replicas]
        ready = tuple(pod.address for pod in pods if pod.ready)
        self._ready = len(ready)
        self._proxy.targets = ready[: 1 if self._asked is Asked.ONE else None] or self._proxy.targets


def _pod(installed: Installed, name: str) -> Object:
    """A pod of the Deployment, bound to a node that is none of the cluster's."""
    named = {"name": NAME, "namespace": NAME}
    deployment = installed.plane.api.get({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": named})
    template = deployment["spec"]["template"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], **named, "name": name},
        "spec": {**template["spec"], "nodeName": "of-the-webhook"},
    }
