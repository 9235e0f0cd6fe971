"""A cluster with KubeVirt, nodes that are played, and the webhook as its manifests install it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Final, NamedTuple

from support.control_plane.installed import Installed
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api, Object
from support.drivers.serving import Serving
from support.kubevirt import vms
from support.kubevirt.following import Follower
from support.kubevirt.kubelets import is_over
from support.kubevirt.nodes import Nodes
from support.kubevirt.plane import KubeVirtPlane
from support.objects.builders import NAMESPACE
from support.scenarios.admitting import until, until_watched

from webhook import cli

FINAL: Final = ("Succeeded", "Failed")
"""Phases of a migration that is over."""
MIGRATION_TARGET: Final = "kubevirt.io/migrationJobUID"
_CREATED_BY: Final = "kubevirt.io/created-by"


class Cluster(NamedTuple):
    """What runs, and who is played."""

    plane: KubeVirtPlane
    nodes: Nodes
    installed: Installed
    serving: Serving | None

    @property
    def api(self) -> Api:
        """The admin's client."""
        return self.plane.api

    def make(self, name: str, claims: Sequence[str] = (), **described: Any) -> None:
        """A VM with its claims, of which it has one with its own name by default; `described` as `vms`."""
        claims = claims or (name,)
        for each in claims:
            if not self.api.find(vms.claim(each)):
                self.api.create(vms.claim(each))
        self.api.create(vms.virtual_machine(name, claims, **described))

    def until_running(self, name: str) -> Object:
        """The instance, as soon as it runs."""
        return self.until_instance(name, lambda found: found["status"].get("phase") == "Running", "Running")

    def until_instance(self, name: str, accept: Callable[[Object], bool], what: str) -> Object:
        """The instance, as soon as it is accepted."""
        target = vms.instance(name)
        found = self.api.wait_for(target, lambda now: bool(now and now.get("status") and accept(now)), what=what)
        assert found is not None
        return found

    def run(self, name: str, *claims: str, **described: Any) -> Object:
        """Make a VM; its instance, which runs."""
        self.make(name, claims, **described)
        return self.until_running(name)

    def start(self, name: str, *, on: bool = True) -> None:
        """Start or stop a VM, and wait until it has stopped."""
        self.api.patch(vms.vm(name), {"spec": {"runStrategy": "Always" if on else "Halted"}})
        if not on:
            self.api.wait_for(vms.instance(name), lambda found: found is None, what="gone")

    def restart(self, name: str) -> Object:
        """As `virtctl restart`: the instance is deleted, and virt-controller makes another, which runs."""
        uid = self.api.get(vms.instance(name))["metadata"]["uid"]
        self.api.delete(vms.instance(name))
        return self.until_instance(
            name, lambda now: now["metadata"]["uid"] != uid and now["status"].get("phase") == "Running", "another"
        )

    def migrate(self, name: str, number: int = 1, **spec: Any) -> Object:
        """A migration that a user makes, as soon as it is over."""
        return self.until_migrated(self.api.create(vms.migration(f"{name}-{number}", name, **spec)))

    def until_migrated(self, migration: Object, *phases: str) -> Object:
        """The migration, in one of these phases: by default, as soon as it is over."""
        wanted = phases or FINAL
        found = self.api.wait_for(
            migration, lambda now: bool(now and (now.get("status") or {}).get("phase") in wanted), what=f"in {wanted}"
        )
        assert found is not None
        return found

    def migrations(self, name: str) -> list[Object]:
        """Those of a VM."""
        found = self.api.items("kubevirt.io/v1", vms.MIGRATION, NAMESPACE)
        return [each for each in found if each["spec"]["vmiName"] == name]

    def pods(self, name: str) -> list[Object]:
        """The launcher pods of a VM's instance that are not over, the first ones first."""
        owner = self.api.get(vms.instance(name))["metadata"]["uid"]
        found = self.api.items("v1", "Pod", NAMESPACE, labelSelector=f"{_CREATED_BY}={owner}")
        return sorted(
            (each for each in found if not is_over(each)), key=lambda each: each["metadata"]["creationTimestamp"]
        )

    def pod(self, name: str) -> Object:
        """The one launcher pod of a VM."""
        (pod,) = until(lambda: [*self.pods(name)] if len(self.pods(name)) == 1 else None, f"one pod of {name}")
        return pod

    def home(self, claim: str) -> str:
        """The node of the share-manager of a claim, as soon as it runs."""
        volume = until(lambda: self.nodes.longhorn.volumes.get((NAMESPACE, claim)), f"a volume for {claim}")
        return until(lambda: self.nodes.longhorn.node(volume or ""), f"the share-manager of {claim}") or ""

    def evict(self, pod: Object) -> ApiError | None:
        """As `kubectl drain`; what the API server or virt-api has refused."""
        metadata = {key: pod["metadata"][key] for key in ("name", "namespace")}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        try:
            self.api.call("POST", self.api.path(pod, "eviction"), eviction)
        except ApiError as error:
            return error
        return None

    def reunite(self, *words: str) -> str:
        """One run of reunite that acts; its lines."""
        kubeconfig = self.plane.kubeconfig(self.plane.directory / "reunite.kubeconfig", self.plane.admin)
        with redirect_stdout(io.StringIO()) as said:
            code = cli.main(["reunite", "-A", "--dry-run=none", "--kubeconfig", str(kubeconfig), *words])
        assert code == 0, said.getvalue()
        return said.getvalue()


@contextmanager
def watched_pods(cluster: Cluster) -> Iterator[list[Object]]:
    """The pods that there are in the block, each as it was last."""
    seen: dict[str, Object] = {}

    def see(pod: Object, *, gone: bool) -> None:
        if not gone:
            seen[pod["metadata"]["uid"]] = pod

    follower, found = Follower(cluster.api, "v1", "Pod", see), list[Object]()
    follower.start()
    yield found
    follower.end()
    found += seen.values()


@contextmanager
def running(
    directory: Path, names: Sequence[str], *flags: str, webhook: bool = True, nodes: Any = None, **plane: Any
) -> Iterator[Cluster]:
    """A cluster with nodes of these names; `flags` are those of `serve`, `nodes` and `plane` of their classes."""
    with KubeVirtPlane(directory, **plane) as made, Nodes(made, names, **(nodes or {})) as played:
        installed = Installed(made, directory)
        if not webhook:
            yield Cluster(made, played, installed, None)
            return
        with installed.serving(*flags) as serving:
            until_watched(serving)
            installed.enable()
            installed.until_called()
            yield Cluster(made, played, installed, serving)
            assert played.failures == []
