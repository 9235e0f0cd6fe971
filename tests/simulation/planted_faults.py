"""Planted faults: each makes one part of the program or of the cluster wrong. A test must find it."""

from __future__ import annotations

from typing import Final, NamedTuple

from simulation import faulty_parts, wrong_views
from simulation.faulty_parts import Fault
from simulation.policies import OURS, REUNITE, Policy

from webhook.core.view import Kind


class PlantedFault(NamedTuple):
    """A planted fault.

    Attributes:
        policy: under which it is looked for.
        fault: what it does to a world.
        workload: in which it is looked for. In two days no VM comes home a second time after a drain.
        scene: what else happens in the cluster: a name of `scenes.SCENES`.
        less_local: whether the fault breaks no invariant, and VMs are on their share-manager's node for less time.
    """

    policy: Policy
    fault: Fault
    scene: str = ""
    workload: str = "rough"
    less_local: bool = False


PLANTED_FAULTS: Final = {
    "a share-manager pod's delete is lost": PlantedFault(
        OURS, faulty_parts.loses(Kind.SHARE_MANAGER_POD, faulty_parts.is_deleted)
    ),
    "a share-manager's end is lost": PlantedFault(OURS, faulty_parts.loses(Kind.SHARE_MANAGER, faulty_parts.has_ended)),
    "changes of nodes are lost": PlantedFault(
        OURS, faulty_parts.loses(Kind.NODE, lambda event: event["type"] == "MODIFIED")
    ),
    "the watch of share-manager pods is a minute late": PlantedFault(
        OURS, faulty_parts.is_late(Kind.SHARE_MANAGER_POD)
    ),
    "the watch of nodes is a minute late": PlantedFault(
        OURS, faulty_parts.is_late(Kind.NODE), "restarts after cordons"
    ),
    "a restarted replica keeps its old caches": PlantedFault(OURS, faulty_parts.restarts_as_it_was),
    "a stale ownerID is believed": PlantedFault(OURS, faulty_parts.views(wrong_views.OwnerBelieved)),
    "the share-manager's state is ignored": PlantedFault(OURS, faulty_parts.views(wrong_views.StateIgnored)),
    "a cordon is ignored": PlantedFault(OURS, faulty_parts.views(wrong_views.CordonIgnored)),
    "other pods are not counted": PlantedFault(OURS, faulty_parts.views(wrong_views.PodsUncounted)),
    "the pod of another volume is evidence": PlantedFault(OURS, faulty_parts.views(wrong_views.PodsOfAnotherVolume)),
    "the annotation names another node": PlantedFault(
        OURS, faulty_parts.answers("virt-launcher", faulty_parts.in_annotation("node-0", "node-1"))
    ),
    "the annotation calls a pin a preference": PlantedFault(
        OURS,
        faulty_parts.answers(
            "virt-launcher", faulty_parts.in_annotation('"required on', '"preferred on'), required=True
        ),
    ),
    "the patch has no affinity": PlantedFault(
        OURS, faulty_parts.answers("virt-launcher", faulty_parts.without_affinity)
    ),
    "a preference becomes a pin": PlantedFault(
        OURS, faulty_parts.answers("virt-launcher", faulty_parts.hard, required=False)
    ),
    "a share-manager pod is pinned": PlantedFault(OURS, faulty_parts.answers("share-manager", faulty_parts.hard)),
    "the audit log says unchanged": PlantedFault(OURS, faulty_parts.changing(faulty_parts.logs_unchanged)),
    "unchanged is the answer, and the pod is changed": PlantedFault(
        OURS, faulty_parts.changing(faulty_parts.says_leave)
    ),
    "an anti-affinity is ignored": PlantedFault(
        OURS, faulty_parts.sets("scheduler", "ignores_anti_affinity", value=True)
    ),
    "a node is filled beyond what it has": PlantedFault(
        OURS, faulty_parts.sets("scheduler", "ignores_requests", value=True)
    ),
    "a second migration of a VM is made": PlantedFault(
        OURS, faulty_parts.sets("migrations", "refuses_second", value=False)
    ),
    "more migrations run than KubeVirt allows": PlantedFault(
        OURS, faulty_parts.sets("migrations", "keeps_limits", value=False)
    ),
    "no replica answers": PlantedFault(OURS, lambda world: setattr(world.webhook, "lost_share", 1.0), less_local=True),
    "share-manager pods are not steered": PlantedFault(
        OURS, faulty_parts.without_entry("share-manager"), less_local=True
    ),
    "virt-launcher pods are not placed": PlantedFault(
        OURS, faulty_parts.without_entry("virt-launcher"), less_local=True
    ),
    "the rest is forgotten": PlantedFault(REUNITE, faulty_parts.limits(rest_seconds=0.0)),
    "a VM is moved as soon as it is apart": PlantedFault(REUNITE, faulty_parts.limits(apart_seconds=0.0)),
    "the turns are forgotten": PlantedFault(REUNITE, faulty_parts.limits(at_once=100)),
    "own migrations are not recognized": PlantedFault(REUNITE, faulty_parts.sees(faulty_parts.without_labels)),
    "the home node is guessed": PlantedFault(REUNITE, faulty_parts.guesses_home),
}
