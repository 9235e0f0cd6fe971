"""The function that answers the AdmissionReviews of an entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import Any, Protocol

from msgspec import Struct

from webhook.core import admit as core
from webhook.core.admit import Answer, Entry, PodCreation
from webhook.core.api import admission_review
from webhook.core.api.admission_review import BadReview
from webhook.core.api.pod import Pod
from webhook.core.decision import Pin
from webhook.core.opt_in import Policy
from webhook.core.reasons import Reason
from webhook.core.view import ClusterView, Ref
from webhook.serving.routes import Admit
from webhook.telemetry import record
from webhook.telemetry.log import failure
from webhook.telemetry.record import LOGGER, AdmissionRecord

OnAnswer = Callable[[Answer, Entry], None]
"""What is told of each answer, after it was made; it neither waits nor fails."""


class Cluster(Protocol):
    """Where the facts come from: a live cluster's Store, or Manifests."""

    def view(self) -> ClusterView:
        """The cluster as it is known now."""
        ...

    async def read(self, view: Any, refs: Sequence[Ref], deadline: float) -> ClusterView:
        """The view with these objects read as well; none of them is NOT_CACHED in it. Ends by `deadline`."""
        ...

    def assume(self, pod: Pod, namespace: str, drawn: Pin) -> None:
        """The pod that is being created in `namespace` was just drawn to nodes."""
        ...

    def forget(self, pod: Pod, namespace: str) -> None:
        """The pod that is being created in `namespace` is decided on anew: what was assumed of it is void."""
        ...


def entries(
    cluster: Cluster, policy: Policy, note: Callable[[AdmissionRecord], None], hear: OnAnswer | None = None
) -> Mapping[str, Admit]:
    """What answers the calls of each entry of the webhook configuration, by its path."""
    return {entry.path: admitter(cluster, policy, note, entry, hear) for entry in Entry}


def admitter(
    cluster: Cluster,
    policy: Policy,
    note: Callable[[AdmissionRecord], None],
    entry: Entry = Entry.VIRT_LAUNCHER,
    hear: OnAnswer | None = None,
) -> Admit:
    """The function that answers the AdmissionReviews of `entry` from `cluster`, and hands a record of each to `note`.

    It raises BadReview for what can't be answered. Any other failure of ours is answered too: the pod is admitted
    unchanged, the reason says so, and the log has the error.
    """

    async def decided(creation: PodCreation, spent: _Spent, deadline: float) -> Answer:
        """The answer, once everything that it takes was read."""
        counts = entry is Entry.VIRT_LAUNCHER and not creation.request.dry_run
        if counts:  # the API server may ask again about the same pod: the first answer is void
            cluster.forget(creation.pod, creation.namespace)
        view = cluster.view()
        answer = core.answer(creation, view, policy)
        while not isinstance(answer, Answer):
            spent.reads += len(answer.refs)
            asked = perf_counter_ns()
            view = await cluster.read(view, answer.refs, deadline)
            spent.read_ns += perf_counter_ns() - asked
            answer = core.answer(creation, view, policy)
        if counts and isinstance(answer.decision, Pin):  # at once, before anybody else is answered
            cluster.assume(creation.before, creation.namespace, answer.decision)
        return answer

    async def admit(body: bytes, deadline: float) -> bytes:
        started, spent = perf_counter_ns(), _Spent()
        try:
            creation = core.read(body, entry)
            answer = creation if isinstance(creation, Answer) else await decided(creation, spent, deadline)
        except BadReview:
            raise
        except Exception as error:  # noqa: BLE001 - the request boundary: whatever goes wrong, the VM starts
            why = Reason.INTERNAL_ERROR.why(problem=type(error).__name__)
            answer = core.unchanged(admission_review.decode(body), why)
            LOGGER.error("admission failed", extra={"fields": {"uid": answer.request.uid, **failure(error)}})
        us = (perf_counter_ns() - started) // 1000
        note(record.of(answer, us, spent.reads, entry, read_us=spent.read_ns // 1000))
        if hear is not None:
            hear(answer, entry)
        return answer.body

    return admit


class _Spent(Struct):
    """What one call cost: objects that were read for it, and the time until they were."""

    reads: int = 0
    read_ns: int = 0
