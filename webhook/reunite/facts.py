"""What a run of `reunite` knows: the situation of a cluster that was read once."""

from __future__ import annotations

from typing import Any

from webhook.core.api.meta import NamespacedName
from webhook.core.opt_in import Policy
from webhook.core.reunite.decide import Situation
from webhook.core.reunite.limits import ReuniteLimits
from webhook.objects import kinds
from webhook.objects.kinds import APIResource
from webhook.objects.manifests import Manifests
from webhook.objects.parts import Part, parts_of_nodes, parts_of_rows
from webhook.objects.vm_rows import rows_from_manifests
from webhook.plan.vms import vm_from


def parts() -> list[Part]:
    """Return what a run reads, with all of it in all namespaces."""
    rows = [part for part in parts_of_rows("", others=False) if part.kind is not kinds.WEBHOOK_CONFIGURATION]
    return [*rows, *parts_of_nodes(), Part(kind=kinds.MIGRATION)]


def first_unread(cluster: Manifests) -> tuple[APIResource[Any], str] | None:
    """Return the first kind that could not be read, and why; None if everything was read."""
    for part in parts():
        if problem := cluster.objects.unread(part.kind):
            return part.kind, problem
    return None


def situation_of(cluster: Manifests, policy: Policy, limits: ReuniteLimits, now: float) -> Situation:
    """Return the situation at `now` (seconds since 1970)."""
    vmis = cluster.objects.of(kinds.VIRTUAL_MACHINE_INSTANCE)
    rows = rows_from_manifests(cluster, policy)
    return Situation(
        now=now,
        vms=[vm_from(cluster, row) for row in rows if NamespacedName(row.namespace, row.name) in vmis],
        migrations=list(cluster.objects.of(kinds.MIGRATION).values()),
        kubevirt=next(iter(cluster.objects.of(kinds.KUBEVIRT).values()), None),
        limits=limits,
        nodes_of={
            (key.namespace, key.name): node
            for key, vmi in vmis.items()
            if (node := vmi.status and vmi.status.node_name)
        },
        nodes={key.name: node for key, node in cluster.objects.of(kinds.NODE).items()},
    )
