"""The admission function: the body of an AdmissionReview in, the body of its answer out. And the cluster that a process
serves: a struct of what is asked of it, and the one that files describe.

Invariant: a call has three results. BadReview for a body that is not an AdmissionReview, the pod unchanged, or the pod
with a patch. The webhook never rejects a pod.

The page shows the VMs of files as the files have them. `live_cluster` makes the struct of a live cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final, Protocol

from msgspec import Struct

from webhook.component_base.health import Check, MetricSource
from webhook.component_base.log_line import failure
from webhook.core import admit as core
from webhook.core.admit import Answer, Entry, PodCreation
from webhook.core.api.admission_review import BadReview
from webhook.core.api.pod import Pod
from webhook.core.decision import Pin
from webhook.core.observe.events import Messages
from webhook.core.observe.vm_status import count_states
from webhook.core.opt_in import Policy
from webhook.core.reasons import Reason
from webhook.core.view import ClusterView, Ref
from webhook.kube.vm_status import VMStatuses
from webhook.objects.cluster import Cluster
from webhook.objects.vm_rows import asking, vm_rows
from webhook.serving.routes import Admit
from webhook.telemetry.record import LOGGER, AdmissionRecord, admission_record

READS_MAX: Final = 32
"""The objects that one call may read. If no cache is up to date, a pod with seven disks needs so many: four for each
disk, and its node, Namespace and VirtualMachineInstance. Anybody who can connect may send a pod that names 10,000
claims, and each read is a request to the API server."""

OnAnswer = Callable[[Answer, Entry], None]
"""Called with each answer about a pod whose owner the cluster has, after it is made. It must neither wait nor raise."""

OnRecord = Callable[[AdmissionRecord], None]
"""Called with the record of each call."""


class FactSource(Protocol):
    """The facts about the cluster: a live cluster's ClusterCache, or Cluster."""

    def view(self) -> ClusterView:
        """Return the cluster as the source knows it now."""
        ...

    async def read(self, view: Any, refs: Sequence[Ref], deadline: float, most: int) -> ClusterView:
        """Read these objects, and return the view with them. Ends by `deadline`, a time of the event loop.

        In the returned view none of the objects is `missing`. Only the first `most` of them are read.
        """
        ...

    def assume(self, pod: Pod, namespace: str, pin: Pin, /) -> None:
        """Count a pod that is created in `namespace` on the nodes of its pin, before a watch shows it."""
        ...

    def forget(self, pod: Pod, namespace: str, /) -> None:
        """Drop what was assumed of a pod that is created in `namespace`, because it is decided again."""
        ...


def admit_functions(
    facts: FactSource, policy: Policy, on_record: OnRecord, on_answer: OnAnswer | None = None
) -> Mapping[str, Admit]:
    """Return the admission function of each entry of the webhook configuration, by its URL path."""
    return {entry.path: admit_function(facts, policy, on_record, entry, on_answer) for entry in Entry}


def admit_function(
    facts: FactSource,
    policy: Policy,
    on_record: OnRecord,
    entry: Entry = Entry.VIRT_LAUNCHER,
    on_answer: OnAnswer | None = None,
) -> Admit:
    """Return the function that answers the AdmissionReviews of `entry` from `facts`.

    It raises BadReview for a body that is not an AdmissionReview. After any other failure it admits the pod unchanged:
    the answer has the reason InternalError, and the log has the error.
    """
    decide = _Deciding(facts, policy, counts_pods=entry is Entry.VIRT_LAUNCHER).decide

    async def admit(body: bytes, deadline: float) -> bytes:
        started, spent = perf_counter_ns(), _Spent()
        try:
            creation = core.read(body, entry)
            answer = creation if isinstance(creation, Answer) else await decide(creation, spent, deadline)
        except BadReview:
            raise
        except Exception as error:  # noqa: BLE001 - the request boundary: the VM starts whatever fails here
            answer = core.failed(body, Reason.INTERNAL_ERROR.why(problem=type(error).__name__))
            LOGGER.error("admission failed", extra={"fields": {"uid": answer.request.uid, **failure(error)}})
        us = (perf_counter_ns() - started) // 1000
        on_record(admission_record(answer, us, spent.reads, entry, read_us=spent.read_ns // 1000))
        if on_answer is not None and answer.of_owner is not None:
            on_answer(answer, entry)
        return answer.body

    return admit


class _Spent(Struct):
    """The cost of one call: the number of objects that it read, and the time of these reads."""

    reads: int = 0
    read_ns: int = 0


class _Deciding(Struct, frozen=True):
    """Decides pods from facts. `counts_pods`: a pinned pod is assumed on its nodes."""

    facts: FactSource
    policy: Policy
    counts_pods: bool

    async def decide(self, creation: PodCreation, spent: _Spent, deadline: float) -> Answer:
        """Return the answer, after reading the objects that it needs and no cache has."""
        facts, policy = self.facts, self.policy
        counts = self.counts_pods and not creation.request.dry_run
        if counts:  # the API server can call again for the same pod: the first answer is void
            facts.forget(creation.pod, creation.namespace)
        view = facts.view()
        answer = core.answer(creation, view, policy)
        while view.missing:
            most, began = READS_MAX - spent.reads, perf_counter_ns()
            spent.reads += min(most, len(view.missing))
            view = await facts.read(view, tuple(view.missing), deadline, most)
            spent.read_ns += perf_counter_ns() - began
            answer = core.answer(creation, view, policy)
        placed = answer.of_owner
        if counts and placed and isinstance(answer.decision, Pin):  # at once, before the process answers another call
            facts.assume(placed.before, placed.namespace, answer.decision)
        return answer


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
    at = cluster.objects.at
    statuses = VMStatuses(at=at, rows=tuple(rows), counts=count_states(rows), as_of=at)
    return ServedCluster(
        cluster,
        cluster.origin,
        {"objects": cluster.objects.size, "ignored": dict(cluster.objects.ignored)},
        vm_statuses=lambda: statuses,
        has_vm=cluster.has_vm,
    )
