"""The cluster that a process serves: a struct of what is asked of it, and the one that files describe.

The page shows the VMs of files as the files have them. `live_cluster` makes the struct of a live cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from webhook.app.handler import FactSource, OnAnswer
from webhook.component_base.health import Check, MetricSource
from webhook.core.observe.events import Messages
from webhook.core.observe.remedy import why_no_vm_starts
from webhook.core.observe.vm_status import count_states
from webhook.core.opt_in import Policy
from webhook.kube.vm_status import VMStatuses
from webhook.objects.cluster import Cluster
from webhook.objects.vm_rows import asking, vm_rows


class ServedCluster(Struct, frozen=True):
    """The facts that admissions are decided from, and what observes the cluster. The defaults are of files.

    Attributes:
        facts: what the admission function asks.
        origin: the address of the API server, or the files.
        log_fields: fields of the log line that reports the start.
        vm_statuses: returns the states of the VMs for the page.
        checks: returns the checks of the caches for /readyz.
        metrics: what /metrics also shows.
        reunite_messages: returns what `reunite` last said of VMs, for the page.
        has_vm: whether the cluster has a VirtualMachineInstance of this namespace and name, or may have it.
        on_answer: called with each answer, to write Events; None if the process writes none.
    """

    facts: FactSource
    origin: str
    log_fields: Mapping[str, Any]
    vm_statuses: Callable[[], VMStatuses]
    checks: Callable[[], Iterable[Check]] = tuple
    metrics: Sequence[MetricSource] = ()
    reunite_messages: Callable[[], Messages] = dict
    has_vm: Callable[[str, str], bool] = lambda *_: True
    on_answer: OnAnswer | None = None


def described_cluster(files: Path, longhorn_namespace: str, policy: Policy) -> ServedCluster:
    """Read the files. The states of their VMs never change.

    Raises:
        UserError: the files can't be read.
    """
    cluster = Cluster.load(files, longhorn_namespace=longhorn_namespace)
    rows = asking(vm_rows(cluster, policy))
    nodes = None  # files without nodes say nothing about nodes
    if cluster.node_names():
        names = sorted({name for row in rows for name in row.nodes})
        problems = ((name, why_no_vm_starts(name, cluster)) for name in names)
        nodes = {name: why.sentence for name, why in problems if why}
    at = cluster.objects.at
    statuses = VMStatuses(at=at, rows=tuple(rows), counts=count_states(rows), as_of=at, nodes=nodes)
    return ServedCluster(
        cluster,
        cluster.origin,
        {"objects": cluster.objects.size, "ignored": dict(cluster.objects.ignored)},
        vm_statuses=lambda: statuses,
        has_vm=cluster.has_vm,
    )
