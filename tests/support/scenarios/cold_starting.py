"""The program on a control plane with VMs that are stopped, and what it does as they start.

The program reads the cluster through a proxy, which records every request and can delay a watch. A cache behind a
delayed watch is synced and lacks the newest objects. The recorded requests show what an admission costs the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import NAME, Installed
from support.control_plane.vm_starts import LAUNCHERS, NODES, Start, Starting, nodes, preferred
from support.drivers.scraping import Scraped, scrape
from support.drivers.serving import Serving
from support.fakes.recording_proxy import Asked, RecordingProxy
from support.objects.builders import LONGHORN_API_VERSION, LONGHORN_NAMESPACE, NAMESPACE
from support.scenarios.admitting import FAIL_OPEN, Counted, admission_lines, caches, until, until_watched

from webhook.core.view import Kind
from webhook.kube.kinds import resources

WEBHOOK: Final = "share-manager.kubevirt-coschedule.io"
_ENTRY: Final = "share-manager"
_PREFIX: Final = "kubevirt_coschedule_admission"
PODS: Final = next(each.title for each in resources(LONGHORN_NAMESPACE) if each.kind is Kind.VIRT_LAUNCHER_POD)
"""The cache that virt-launcher pods are in."""

_LAST: Final = Start("last")


class Seen(NamedTuple):
    """What was seen while pods were created.

    Attributes:
        reads: the program's requests, except watches.
        lines: its log lines of share-manager pods.
        failed_open: calls that failed open, of either entry.
        before, after: the program's metrics.
    """

    reads: Sequence[Asked]
    lines: Sequence[dict[str, Any]]
    failed_open: float
    before: Scraped
    after: Scraped

    @property
    def calls(self) -> int:
        """How many share-manager pods it was asked about."""
        return self._more(f"{_PREFIX}_reads_count")

    @property
    def reasons(self) -> set[str]:
        """Of its decisions."""
        decided = [each.labels for each in self.after.samples if each.name == f"{_PREFIX}s_total"]
        reasons = {labels["reason"] for labels in decided if labels["entry"] == _ENTRY}
        return {reason for reason in reasons if self._more(f"{_PREFIX}s_total", reason=reason)}

    def each_read(self, objects: int) -> bool:
        """Whether each call has read so many objects: none has read more, and all together have read as many."""
        at_most = self._more(f"{_PREFIX}_reads_bucket", le=str(float(objects)))
        return (at_most, self._more(f"{_PREFIX}_reads_sum")) == (self.calls, objects * self.calls)

    def _more(self, name: str, **labels: str) -> int:
        had, has = (
            scraped.value(name, entry=_ENTRY, **labels) if scraped.has(name, entry=_ENTRY, **labels) else 0
            for scraped in (self.before, self.after)
        )
        return round(has - had)


class Here(NamedTuple):
    """The program, its way to the API server, and VMs to start."""

    installed: Installed
    way: RecordingProxy
    serving: Serving
    starting: Starting

    @contextmanager
    def late(self) -> Iterator[None]:
        """Delay the watch of virt-launcher pods until the block ends."""
        self.way.hold(LAUNCHERS)
        try:
            yield
        finally:
            self.way.release(LAUNCHERS)

    def until_known(self) -> None:
        """Wait until every VM's pod is known as it is now: the last VM's is, which is made after all others."""
        pod = self.starting.vm(_LAST, str(len(self._lines())))
        node = self.starting.placed(pod)

        def known() -> bool:
            return preferred(self.starting.share_manager(_LAST, dryRun="All")) == {node: 100}

        until(known, "the last VM's node")
        self.starting.api.delete(pod)

    def until_counted(self, pods: int) -> None:
        """Wait for this number of VMs' and share-managers' pods in the cache, beside the instance-manager pods."""
        pods += len(NODES)
        until(lambda: caches(self.serving)[PODS].detail.startswith(f"{pods} objects"), f"{pods} pods")

    @contextmanager
    def seeing(self) -> Iterator[Callable[[], Seen]]:
        """Look from now on until the function is called."""
        counted, reads, lines = Counted(self.installed.plane.api), len(self.way.reads()), len(self._lines())
        before, port = scrape(self.serving.health_port), self.serving.health_port

        def seen() -> Seen:
            now = self.way.reads()[reads:], self._lines()[lines:], counted.more()(FAIL_OPEN)
            return Seen(*now, before, scrape(port))

        yield seen

    def _lines(self) -> list[dict[str, Any]]:
        return [line for line in admission_lines(self.serving) if line["entry"] == _ENTRY]


@contextmanager
def stopped(installed: Installed, directory: Path, starts: Sequence[Start]) -> Iterator[Here]:
    """The program, its caches up, with these VMs."""
    plane = installed.plane
    installed.enable()
    with RecordingProxy(plane) as way, ClusterState(plane.api) as cluster, Starting(plane.api) as starting:
        cluster.become([*nodes(), *(each for start in (*starts, _LAST) for each in (start.instance, *start.shelf))])
        kubeconfig = way.kubeconfig(directory / "kubeconfig", plane.service_account(NAME, NAME))
        with installed.serving(cluster=("--kubeconfig", kubeconfig)) as serving:
            until_watched(serving)
            installed.until_called()
            yield Here(installed, way, serving, starting)
    installed.disable()


def tickets_of(start: Start) -> Asked:
    """The one GET of a volume's tickets."""
    path = f"/apis/{LONGHORN_API_VERSION}/namespaces/{LONGHORN_NAMESPACE}/volumeattachments/{start.volume}"
    return Asked("GET", path, {})


def pods_on(node: str) -> Asked:
    """The one list of the virt-launcher pods of the VMs' namespace on a node, from the API server's own cache."""
    query = {
        "labelSelector": "kubevirt.io=virt-launcher",
        "fieldSelector": f"spec.nodeName={node}",
        "resourceVersion": "0",
    }
    return Asked("GET", f"/api/v1/namespaces/{NAMESPACE}/pods", query)
