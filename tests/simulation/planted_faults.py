"""Planted faults: each makes one part of the program or of the cluster wrong. A test must find it."""

from __future__ import annotations

from typing import Final, NamedTuple

from simulation import faulty_parts, wrong_views
from simulation.faulty_parts import Fault

from webhook.core.view import Kind


class PlantedFault(NamedTuple):
    """A planted fault.

    Attributes:
        fault: what it does to a world.
        scene: what else happens in the cluster: a name of `scenes.SCENES`.
        reunite: how many processes of the program run.
        less_local: whether the fault breaks no invariant, and VMs are on their share-manager's node for less time.
    """

    fault: Fault
    scene: str = ""
    reunite: int = 0
    less_local: bool = False


PLANTED_FAULTS: Final = {
    "a share-manager pod's delete is lost": PlantedFault(
        faulty_parts.loses(Kind.SHARE_MANAGER_POD, faulty_parts.is_deleted)
    ),
    "a share-manager's end is lost": PlantedFault(faulty_parts.loses(Kind.SHARE_MANAGER, faulty_parts.has_ended)),
    "changes of nodes are lost": PlantedFault(faulty_parts.loses(Kind.NODE, lambda event: event["type"] == "MODIFIED")),
    "the watch of share-manager pods is a minute late": PlantedFault(faulty_parts.is_late(Kind.SHARE_MANAGER_POD)),
    "the watch of nodes is a minute late": PlantedFault(faulty_parts.is_late(Kind.NODE), "restarts after cordons"),
    "a restarted replica keeps its old caches": PlantedFault(faulty_parts.restarts_as_it_was),
    "a stale ownerID is believed": PlantedFault(faulty_parts.views(wrong_views.OWNER_BELIEVED)),
    "the share-manager's state is ignored": PlantedFault(faulty_parts.views(wrong_views.STATE_IGNORED)),
    "a cordon is ignored": PlantedFault(faulty_parts.views(wrong_views.CORDON_IGNORED)),
    "other pods are not counted": PlantedFault(faulty_parts.views(wrong_views.PodsUncounted)),
    "the pod of another volume is evidence": PlantedFault(faulty_parts.views(wrong_views.POD_OF_ANOTHER_VOLUME)),
    "the annotation names another node": PlantedFault(
        faulty_parts.answers("virt-launcher", faulty_parts.in_annotation("node-0", "node-1"))
    ),
    "the annotation calls a pin a preference": PlantedFault(
        faulty_parts.answers(
            "virt-launcher", faulty_parts.in_annotation('"required on', '"preferred on'), required=True
        ),
    ),
    "the patch has no affinity": PlantedFault(faulty_parts.answers("virt-launcher", faulty_parts.without_affinity)),
    "a preference becomes a pin": PlantedFault(
        faulty_parts.answers("virt-launcher", faulty_parts.hard, required=False)
    ),
    "a share-manager pod is pinned": PlantedFault(faulty_parts.answers("share-manager", faulty_parts.hard)),
    "the audit log says unchanged": PlantedFault(faulty_parts.changing(faulty_parts.logs_unchanged)),
    "unchanged is the answer, and the pod is changed": PlantedFault(faulty_parts.changing(faulty_parts.says_leave)),
    "no replica answers": PlantedFault(lambda world: setattr(world.webhook, "lost_share", 1.0), less_local=True),
    "share-manager pods are not steered": PlantedFault(faulty_parts.without_entry("share-manager"), less_local=True),
    "virt-launcher pods are not placed": PlantedFault(faulty_parts.without_entry("virt-launcher"), less_local=True),
    "the rest is forgotten": PlantedFault(faulty_parts.limits(rest_seconds=0.0), reunite=1),
    "a VM is moved as soon as it is apart": PlantedFault(faulty_parts.limits(apart_seconds=0.0), reunite=1),
    "the turns are forgotten": PlantedFault(faulty_parts.limits(at_once=100), reunite=1),
    "own migrations are not recognized": PlantedFault(faulty_parts.sees_no_labels, reunite=1),
    "the home node is guessed": PlantedFault(faulty_parts.guesses_home, reunite=1),
}
