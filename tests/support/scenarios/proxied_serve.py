"""A `serve` that reads the cluster through a proxy, for tests with faults on the way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_api import Object
from support.drivers.serving import Serving
from support.fakes.proxy import Address, Proxy
from support.scenarios.admitting import Admission, Cache, admission_lines, admitted, caches, until, until_watched
from support.scenarios.moving_share_manager import CLAIM, MovingShareManager

from webhook.kube.informer.list_watch import HEALTHY_SECONDS

_EXACT_TIMES: Final = 20
_JUST: Final = re.compile("last event [012] s ago")
_ROLES: Final[tuple[Object, ...]] = (
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": NAME}},
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": NAME, "namespace": "longhorn-system"},
    },
)


class ProxiedServe(NamedTuple):
    """The program, its way to the API server, and the cluster that it should know."""

    plane: ControlPlane
    serving: Serving
    way: Proxy
    share_manager: MovingShareManager

    def asked(self) -> Admission:
        """A VM start pod, created and not kept."""
        return admitted(self.plane.api, CLAIM)

    def logged(self) -> dict[str, Any]:
        """The log line of the last call."""
        return admission_lines(self.serving)[-1]

    def caches(self) -> dict[str, Cache]:
        """Every cache by its name."""
        return caches(self.serving)

    def has_just_heard(self) -> None:
        """Have something come in by each watch."""
        self.share_manager.touch()
        until(
            lambda: all(_JUST.search(cache.detail) for cache in self.caches().values()),
            lambda: f"news of each kind: {self.caches()}",
        )

    def until_noticed(self) -> None:
        """Wait until every watch is known to be over."""
        until(lambda: not any(cache.watched for cache in self.caches().values()), "trouble")

    def until_healthy(self) -> None:
        """Wait until every watch has been up for so long that it counts as health: the next fault starts a back-off."""
        until_watched(self.serving)
        [*_, last] = (line for line in self.serving.lines() if line["message"] == "cache synced")
        up = datetime.fromisoformat(last["time"])
        until(lambda: (datetime.now(UTC) - up).total_seconds() > HEALTHY_SECONDS, "health")

    def assert_well(self) -> None:
        """Wait until the caches follow the API server; then pods are pinned to the true node, and nothing is read."""
        until_watched(self.serving)
        logged = len(self.serving.lines())
        required = [self.asked().required for _ in range(_EXACT_TIMES)]
        lines = [line for line in self.serving.lines()[logged:] if line["message"] == "admission"]
        assert required == [[self.share_manager.node]] * _EXACT_TIMES, lines
        assert [line.get("reads", 0) for line in lines] == [0] * _EXACT_TIMES


@contextmanager
def proxied_serve(installed: Installed, kubeconfig: Path, *flags: str) -> Iterator[ProxiedServe]:
    """A program that reads the API server through a proxy, by a copy of this kubeconfig."""
    plane = installed.plane
    with Proxy(Address("127.0.0.1", plane.port)) as way, MovingShareManager(plane.api) as share_manager:
        config = json.loads(kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{way.address.port}"
        kubeconfig.write_text(json.dumps(config))
        with installed.serving(*flags, cluster=("--kubeconfig", kubeconfig)) as serving:
            yield ProxiedServe(plane, serving, way, share_manager)


@contextmanager
def allowed(plane: ControlPlane, *verbs: str) -> Iterator[None]:
    """The program's service account may only do this with what it reads, and afterwards what the manifests say."""
    before = [plane.api.get(role) for role in _ROLES]
    for role in before:
        plane.api.patch(role, {"rules": [{**rule, "verbs": list(verbs)} for rule in role["rules"] if verbs]})
    try:
        yield
    finally:
        for role in before:
            plane.api.patch(role, {"rules": role["rules"]})
