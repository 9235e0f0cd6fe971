"""Planted faults: each makes one part of the program or of the cluster wrong. A test must find it."""

from __future__ import annotations

from typing import Final, NamedTuple

from simulation import plants, wrong_views
from simulation.plants import Plant
from simulation.policies import OURS, REUNITE, Policy

from webhook.core.view import Kind


class Mutation(NamedTuple):
    """A planted fault.

    Attributes:
        policy: under which it is looked for.
        plant: what it does to a world.
        workload: in which it is looked for. In two days no VM comes home a second time after a drain.
        scene: what else happens in the cluster: a name of `spoiled.SCENES`.
        less_local: whether the fault breaks no invariant, and VMs are on their share-manager's node for less time.
    """

    policy: Policy
    plant: Plant
    scene: str = ""
    workload: str = "rough"
    less_local: bool = False


MUTATIONS: Final = {
    "a share-manager pod's delete is lost": Mutation(OURS, plants.loses(Kind.SHARE_MANAGER_POD, plants.is_deleted)),
    "a share-manager's end is lost": Mutation(OURS, plants.loses(Kind.SHARE_MANAGER, plants.has_ended)),
    "changes of nodes are lost": Mutation(OURS, plants.loses(Kind.NODE, lambda event: event["type"] == "MODIFIED")),
    "the watch of share-manager pods is a minute late": Mutation(OURS, plants.is_late(Kind.SHARE_MANAGER_POD)),
    "the watch of nodes is a minute late": Mutation(OURS, plants.is_late(Kind.NODE), "restarts after cordons"),
    "a restarted replica keeps its old caches": Mutation(OURS, plants.restarts_as_it_was),
    "a stale ownerID is believed": Mutation(OURS, plants.views(wrong_views.OwnerBelieved)),
    "the share-manager's state is ignored": Mutation(OURS, plants.views(wrong_views.StateIgnored)),
    "a cordon is ignored": Mutation(OURS, plants.views(wrong_views.CordonIgnored)),
    "other pods are not counted": Mutation(OURS, plants.views(wrong_views.PodsUncounted)),
    "the pod of another volume is evidence": Mutation(OURS, plants.views(wrong_views.PodsOfAnotherVolume)),
    "the annotation names another node": Mutation(
        OURS, plants.answers("virt-launcher", plants.in_annotation("node-0", "node-1"))
    ),
    "the annotation calls a pin a preference": Mutation(
        OURS, plants.answers("virt-launcher", plants.in_annotation('"required on', '"preferred on'), required=True)
    ),
    "the patch has no affinity": Mutation(OURS, plants.answers("virt-launcher", plants.without_affinity)),
    "a preference becomes a pin": Mutation(OURS, plants.answers("virt-launcher", plants.hard, required=False)),
    "a share-manager pod is pinned": Mutation(OURS, plants.answers("share-manager", plants.hard)),
    "the audit log says unchanged": Mutation(OURS, plants.changing(plants.logs_unchanged)),
    "unchanged is the answer, and the pod is changed": Mutation(OURS, plants.changing(plants.says_leave)),
    "an anti-affinity is ignored": Mutation(OURS, plants.sets("scheduler", "ignores_anti_affinity", value=True)),
    "a node is filled beyond what it has": Mutation(OURS, plants.sets("scheduler", "ignores_requests", value=True)),
    "a second migration of a VM is made": Mutation(OURS, plants.sets("migrations", "refuses_second", value=False)),
    "more migrations run than KubeVirt allows": Mutation(OURS, plants.sets("migrations", "keeps_limits", value=False)),
    "no replica answers": Mutation(OURS, lambda world: setattr(world.webhook, "lost_share", 1.0), less_local=True),
    "share-manager pods are not steered": Mutation(OURS, plants.without_entry("share-manager"), less_local=True),
    "virt-launcher pods are not placed": Mutation(OURS, plants.without_entry("virt-launcher"), less_local=True),
    "the cooldown is forgotten": Mutation(REUNITE, plants.limits(cooldown_seconds=0.0)),
    "a VM is moved as soon as it is apart": Mutation(REUNITE, plants.limits(apart_seconds=0.0)),
    "the back-off is forgotten": Mutation(REUNITE, plants.limits(backoff_seconds=0.0)),
    "the budget of the cluster is forgotten": Mutation(REUNITE, plants.limits(at_once=100), "time windows", "month"),
    "the budget of a node is forgotten": Mutation(REUNITE, plants.limits(at_once_per_node=100)),
    "a named target is no will": Mutation(REUNITE, plants.sees(names_target=False)),
    "an evacuation is not seen": Mutation(REUNITE, plants.sees(evacuates=None)),
    "a drain counts as a move away": Mutation(REUNITE, plants.sees(priority="system-maintenance"), workload="month"),
    "an eviction counts as a drain": Mutation(REUNITE, plants.sees(priority="system-critical")),
    "what the last round did is forgotten": Mutation(REUNITE, plants.forgets_rounds),
    "the time windows are forgotten": Mutation(REUNITE, plants.limits(windows=()), "time windows"),
    "own migrations are not recognized": Mutation(REUNITE, plants.sees(ours=False, names_target=False)),
    "stuck VMs are not freed": Mutation(REUNITE, plants.frees_nobody, "spoiled pins"),
    "the home node is guessed": Mutation(REUNITE, plants.guesses_home),
}
