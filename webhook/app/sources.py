"""The type `Sources`: what a process serves from. A live cluster and manifests each make one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from webhook.app.handler import FactSource, OnAnswer
from webhook.app.settings import ServeSettings
from webhook.component_base.health import Check
from webhook.component_base.metrics import MetricSource
from webhook.core.observe.reunite_messages import Messages
from webhook.core.opt_in import Mode, Policy

if TYPE_CHECKING:
    from webhook.kube.vm_status import VMStatuses


def policy_of(settings: ServeSettings) -> Policy:
    """Return the operator's choices, for all that decides, and all that shows decisions."""
    return Policy(
        Mode(settings.mode),
        settings.longhorn_namespace,
        opt_in_all=settings.opt_in_all,
        audit=settings.audit,
        shortlist=settings.shortlist == "auto",
    )


class Sources(Struct, frozen=True):
    """The facts that admissions are decided from, and what observes the cluster.

    The fields after the fourth are for a live cluster only.

    Attributes:
        facts: what the admission function asks.
        cluster: the address of the API server, or the files.
        log_fields: fields of the log line that reports the start.
        vm_statuses: returns the states of the VMs for the page.
        checks: returns the checks of the caches for /readyz.
        metrics: what /metrics also shows.
        reunite_messages: returns what `reunite` last said of VMs, for the page.
        on_answer: called with each answer, to write Events; None if the process writes none.
    """

    facts: FactSource
    cluster: str
    log_fields: Mapping[str, Any]
    vm_statuses: Callable[[], VMStatuses]
    checks: Callable[[], Iterable[Check]] = tuple
    metrics: Sequence[MetricSource] = ()
    reunite_messages: Callable[[], Messages] = dict
    on_answer: OnAnswer | None = None
