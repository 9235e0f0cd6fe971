"""A power cut is over: every VM of a cluster starts at once, and the share-managers of all of them sit on few nodes.

What kubelets and controllers would do is left out: nothing runs, and a pod that the scheduler evicts is being deleted
for as long as it is looked at.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Self

from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import MAX_CALL_SECONDS, Installed
from support.control_plane.kube_api import Api, Object
from support.control_plane.replicas import REPLICAS, Asked, Replicas
from support.objects import builders
from support.scenarios.admitting import until as wait_until
from support.scenarios.admitting import until_watched
from support.scenarios.storm import PRIORITIES, Storm, _priority_class
from support.waits import MAX_WAIT_SECONDS

_LOOK_SECONDS: Final = 0.25


class Outcome(NamedTuple):
    """The result for the VMs."""

    decided: Counter[str]
    bound: int
    at_home: Counter[str]  # by node
    stranded: Sequence[str]  # Pending, and pinned by us
    waiting: Sequence[str]  # Pending for another reason
    evicted: Sequence[str]
    unjudged: int  # the scheduler has not looked at them yet
    seconds: float

    @property
    def together(self) -> int:
        """How many are with their share-manager."""
        return self.at_home.total()

    def __str__(self) -> str:
        """One line."""
        decided = ", ".join(f"{count} {word}" for word, count in sorted(self.decided.items()))
        return (
            f"{decided}; {self.bound} bound, {self.together} with their share-manager, {len(self.stranded)} stranded by"
            f" a pin, {len(self.waiting)} waiting otherwise, {len(self.evicted)} evicted, {self.seconds:.1f} s"
        )


def everybody_runs(outcome: Outcome) -> bool:
    """Whether every VM has a node."""
    return not outcome.stranded and not outcome.waiting


class Booting:
    """A storm's cluster on a control plane. A context manager: nothing is left of it."""

    def __init__(self, installed: Installed, storm: Storm) -> None:
        self.installed, self.storm = installed, storm
        self.api = installed.plane.api
        self._cluster = ClusterState(self.api)

    def __enter__(self) -> Self:
        for name, value in PRIORITIES.items():
            self.api.apply(_priority_class(name, value))
        self._cluster.become(self.storm.objects())
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_vms()
        self._delete_pods("default")
        self._cluster.__exit__()
        for name, value in PRIORITIES.items():
            self.api.delete(_priority_class(name, value), missing_ok=True)

    def stop_vms(self) -> None:
        """Delete the VMs' pods."""
        self._delete_pods(builders.NAMESPACE)

    def stop_others(self, prefix: str) -> None:
        """Delete the pods of others that came amid a storm."""
        for pod in self.api.items("v1", "Pod", "default"):
            if pod["metadata"]["name"].startswith(f"filler-{prefix}"):
                self.api.delete({"apiVersion": "v1", "kind": "Pod", **pod}, gracePeriodSeconds="0")

    def _delete_pods(self, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods"
        self.api.call("DELETE", path, parameters={"gracePeriodSeconds": "0"})

    @contextmanager
    def served(self, *flags: str, count: int = REPLICAS, asked: Asked = Asked.AT_RANDOM) -> Iterator[Replicas]:
        """So many replicas with these flags, their caches up."""
        with Replicas(self.installed, *flags, count=count, asked=asked) as replicas:
            self.installed.enable(timeoutSeconds=MAX_CALL_SECONDS)
            for serving in replicas.serving:
                until_watched(serving)
            replicas.until_all_ready()
            self.installed.until_called()
            yield replicas
        self.installed.disable()

    def start(
        self,
        at_once: int,
        *,
        amid: Callable[[Api], Any] | None = None,
        until: Callable[[Outcome], bool] = everybody_runs,
    ) -> Outcome:
        """Create every VM's pod, `at_once` at a time, and return the result that `until` accepts.

        `amid` runs when the pods of the first VMs, half of those that fit, are created and other calls go on. It ends
        when the replicas know of it. VMs that were pinned before the others started are on their node by then.
        """
        began, half, known = time.monotonic(), threading.Event(), threading.Event()
        vms, first = self.storm.vms, set(range(self.storm.room // 2))

        def create(vm: int) -> Object:
            if vm >= self.storm.afterwards:
                known.wait(MAX_WAIT_SECONDS)
            created = self.api.create(self.storm.launcher(vm))
            first.discard(vm)
            if not first:
                half.set()
            return created

        def disturb() -> None:
            half.wait(MAX_WAIT_SECONDS)
            if amid:
                wait_until(lambda: not self._pinned_and_not_bound(), "kube-scheduler to handle the pinned VMs")
                amid(self.api)
            known.set()

        disturber = threading.Thread(target=disturb)
        disturber.start()
        with ThreadPoolExecutor(at_once) as pool:
            created = list(pool.map(create, range(vms)))
        disturber.join()
        return self._settled(created, began, until)

    def _pinned_and_not_bound(self) -> list[Object]:
        pods = self.api.items("v1", "Pod", builders.NAMESPACE)
        return [pod for pod in pods if _word(pod) == "required" and not pod["spec"].get("nodeName")]

    def _settled(self, created: Sequence[Object], began: float, until: Callable[[Outcome], bool]) -> Outcome:
        """The outcome that `until` takes; where nothing changes any more before there is one, the last that was."""
        changed_at, last = time.monotonic(), (-1, -1)
        while True:
            outcome = self._outcome(created, time.monotonic() - began)
            if (outcome.bound, outcome.unjudged) != last:
                changed_at, last = time.monotonic(), (outcome.bound, outcome.unjudged)
            if (not outcome.unjudged and until(outcome)) or time.monotonic() - changed_at > MAX_WAIT_SECONDS:
                return outcome
            threading.Event().wait(_LOOK_SECONDS)

    def _outcome(self, created: Sequence[Object], seconds: float) -> Outcome:
        pods = {pod["metadata"]["name"]: pod for pod in self.api.items("v1", "Pod", builders.NAMESPACE)}
        homes = {self.storm.launcher(vm)["metadata"]["name"]: self.storm.home(vm) for vm in range(self.storm.vms)}
        left = [pod for pod in pods.values() if not pod["spec"].get("nodeName")]
        others = self.api.items("v1", "Pod", "default")
        evicted = sorted(each["metadata"]["name"] for each in [*pods.values(), *others] if _is_leaving(each))
        evicted += sorted({pod["metadata"]["name"] for pod in created} - pods.keys())
        return Outcome(
            decided=Counter(_word(pod) for pod in created),
            bound=len(pods) - len(left),
            at_home=Counter(homes[name] for name, pod in pods.items() if pod["spec"].get("nodeName") == homes[name]),
            stranded=[pod["metadata"]["name"] for pod in left if _word(pod) == "required"],
            waiting=[pod["metadata"]["name"] for pod in left if _word(pod) != "required"],
            evicted=evicted,
            unjudged=sum(not _is_judged(pod) for pod in left),
            seconds=seconds,
        )


def _is_judged(pod: Object) -> bool:
    return any(each["type"] == "PodScheduled" for each in pod["status"].get("conditions") or ())


def _is_leaving(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _word(pod: Object) -> str:
    """The first word of our decision."""
    words: str = (pod["metadata"].get("annotations") or {}).get(builders.DECISION, "none")
    return words.partition(" ")[0].rstrip(":")
