"""Planted faults: each makes one part of the program or of the cluster wrong. The hunt must find it.

A fault is planted at a seam that the simulation has anyway. Seams are what a watch delivers, a view answers and an
answer says, what the program `reunite` sees and may do, and what the models of the cluster keep to.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace
from simulation import wrong_views
from simulation.admission import entry_title
from simulation.policies import OURS, REUNITE, Policy
from simulation.spoiled import restart_after_cordons, spoil

from webhook.core.admit import Answer, PodCreation
from webhook.core.decision import Leave, Pin
from webhook.core.reasons import ANNOTATION_DECISION
from webhook.core.view import Kind
from webhook.kube.cache.view import CallView

if TYPE_CHECKING:
    from simulation.watcher import Watcher
    from simulation.world import World

_AFFINITY: Final = "/spec/affinity"
_MINUTE: Final = 60.0
Plant = Callable[["World"], object]
Edit = Callable[[list[dict[str, Any]]], object]


def nothing(_: World) -> None:
    """Plant nothing."""


class Mutation(NamedTuple):
    """A planted fault.

    Attributes:
        policy: under which it is looked for.
        plant: what it does to a world.
        scene: what else happens in the cluster, in the run without the fault, too.
    """

    policy: Policy
    plant: Plant
    scene: Plant = nothing


# What watches deliver.


def _loses(kind: Kind, says: Callable[[dict[str, Any]], bool]) -> Plant:
    """No replica gets an event of this kind that `says` is true for."""

    def plant(world: World) -> None:
        for replica in world.replicas:
            replica.watcher.lost = lambda each, event: each is kind and says(json.loads(event))

    return plant


def _is_late(kind: Kind) -> Plant:
    def plant(world: World) -> None:
        for replica in world.replicas:
            usual = replica.watcher.lag
            replica.watcher.lag = lambda each, usual=usual: usual(each) + (_MINUTE if each is kind else 0.0)

    return plant


def _restarts_as_it_was(world: World) -> None:
    """A replica that restarts lists nothing, and takes its old caches for the cluster."""
    for replica in world.replicas:
        replica.watcher.restart = lambda: None


# What views answer.


def _views(type_: type[CallView]) -> Plant:
    def plant(world: World) -> None:
        for replica in world.replicas:
            replica.watcher.view_type = type_

    return plant


# What answers say.


def _answers(title: str, edit: Edit, *, required: bool | None = None) -> Plant:
    """Change the patch of each answer for a kind of pod, where there is one."""

    def change(creation: PodCreation, answer: Answer, _: Watcher) -> Answer:
        response = json.loads(answer.body)
        wanted = isinstance(answer.decision, Pin) and required in (None, bool(answer.decision.required))
        if creation.entry.title != title or not wanted or "patch" not in response["response"]:
            return answer
        operations = json.loads(base64.b64decode(response["response"]["patch"]))
        edit(operations)
        response["response"]["patch"] = base64.b64encode(json.dumps(operations).encode()).decode()
        return replace(answer, body=msgspec.json.encode(response))

    return _changing(change)


def _changing(change: Callable[[PodCreation, Answer, Watcher], Answer]) -> Plant:
    def plant(world: World) -> None:
        assert world.webhook is not None
        world.webhook.change = change

    return plant


def _in_annotation(old: str, new: str) -> Edit:
    def edit(operations: list[dict[str, Any]]) -> None:
        for operation in operations:
            text = json.dumps(operation["value"])
            if ANNOTATION_DECISION.partition("/")[2] in f"{operation['path']}{text}":
                operation["value"] = json.loads(text.replace(old, new))

    return edit


def _without_affinity(operations: list[dict[str, Any]]) -> None:
    operations[:] = [each for each in operations if not each["path"].startswith(_AFFINITY)]


def _hard(operations: list[dict[str, Any]]) -> None:
    """Make a preference a requirement."""
    for each in operations:
        text = json.dumps(each["value"])
        if each["path"].startswith(_AFFINITY) and "preferredDuringScheduling" in text:
            node_affinity = each["value"]["nodeAffinity"]
            preferred = node_affinity.pop("preferredDuringSchedulingIgnoredDuringExecution")
            terms = {"nodeSelectorTerms": [term["preference"] for term in preferred]}
            node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = terms


def _logs_unchanged(_: PodCreation, answer: Answer, __: Watcher) -> Answer:
    return replace(answer, audit_annotations={**answer.audit_annotations, "decision": "unchanged"})


def _says_leave(_: PodCreation, answer: Answer, __: Watcher) -> Answer:
    if not isinstance(answer.decision, Pin):
        return answer
    told = {**answer.audit_annotations, "decision": "unchanged"}
    return replace(answer, decision=Leave(why=answer.decision.why), audit_annotations=told)


# What the program reunite sees, and may do.


def _limits(**changed: float) -> Plant:
    def plant(world: World) -> None:
        for each in world.reuniting:
            each.limits = replace(each.limits, **changed)

    return plant


def _frees_nobody(world: World) -> None:
    for each in world.reuniting:
        each.stuck.limits = replace(each.stuck.limits, stuck_seconds=1e9)


def _sees(**changed: Any) -> Plant:
    def plant(world: World) -> None:
        for each in world.reuniting:
            each.edit_seen = lambda seen: replace(seen, **changed)

    return plant


def _guesses_home(world: World) -> None:
    create, nodes = world.migrations.create, list(world.nodes.states)

    def elsewhere(vm: Any, by: str, node: str = "", *more: Any) -> Any:
        return create(vm, by, nodes[nodes.index(node) - 1] if by == "reunite" else node, *more)

    world.migrations.create = elsewhere  # type: ignore[method-assign]


def _set(part: str, name: str, value: object) -> Plant:
    return lambda world: setattr(getattr(world, part), name, value)


def _without_entry(title: str) -> Plant:
    def plant(world: World) -> None:
        asked = world.creation.webhook
        world.creation.webhook = lambda pod: pod if entry_title(pod) == title else asked(pod)

    return plant


def _is_deleted(event: dict[str, Any]) -> bool:
    return event["type"] == "DELETED" or "deletionTimestamp" in event["object"]["metadata"]


def _has_ended(event: dict[str, Any]) -> bool:
    return event["object"]["status"].get("state") in ("stopping", "stopped", "error")


MUTATIONS: Final = {
    "a share-manager pod's delete is lost": Mutation(OURS, _loses(Kind.SHARE_MANAGER_POD, _is_deleted)),
    "a share-manager's end is lost": Mutation(OURS, _loses(Kind.SHARE_MANAGER, _has_ended)),
    "changes of nodes are lost": Mutation(OURS, _loses(Kind.NODE, lambda event: event["type"] == "MODIFIED")),
    "the watch of share-manager pods is a minute late": Mutation(OURS, _is_late(Kind.SHARE_MANAGER_POD)),
    "the watch of nodes is a minute late": Mutation(OURS, _is_late(Kind.NODE), restart_after_cordons),
    "a restarted replica keeps its old caches": Mutation(OURS, _restarts_as_it_was),
    "a stale ownerID is believed": Mutation(OURS, _views(wrong_views.OwnerBelieved)),
    "the share-manager's state is ignored": Mutation(OURS, _views(wrong_views.StateIgnored)),
    "a cordon is ignored": Mutation(OURS, _views(wrong_views.CordonIgnored)),
    "other pods are not counted": Mutation(OURS, _views(wrong_views.PodsUncounted)),
    "the pod of another volume is evidence": Mutation(OURS, _views(wrong_views.PodsOfAnotherVolume)),
    "the annotation names another node": Mutation(OURS, _answers("virt-launcher", _in_annotation("node-0", "node-1"))),
    "the annotation calls a pin a preference": Mutation(
        OURS, _answers("virt-launcher", _in_annotation('"required on', '"preferred on'), required=True)
    ),
    "the patch has no affinity": Mutation(OURS, _answers("virt-launcher", _without_affinity)),
    "a preference becomes a pin": Mutation(OURS, _answers("virt-launcher", _hard, required=False)),
    "a share-manager pod is pinned": Mutation(OURS, _answers("share-manager", _hard)),
    "the audit log says unchanged": Mutation(OURS, _changing(_logs_unchanged)),
    "unchanged is the answer, and the pod is changed": Mutation(OURS, _changing(_says_leave)),
    "an anti-affinity is ignored": Mutation(OURS, _set("scheduler", "ignores_anti_affinity", value=True)),
    "a node is filled beyond what it has": Mutation(OURS, _set("scheduler", "ignores_requests", value=True)),
    "a second migration of a VM is made": Mutation(OURS, _set("migrations", "refuses_second", value=False)),
    "more migrations run than KubeVirt allows": Mutation(OURS, _set("migrations", "keeps_limits", value=False)),
    "no replica answers": Mutation(OURS, lambda world: setattr(world.webhook, "lost_share", 1.0)),
    "share-manager pods are not steered": Mutation(OURS, _without_entry("share-manager")),
    "virt-launcher pods are not placed": Mutation(OURS, _without_entry("virt-launcher")),
    "the cooldown is forgotten": Mutation(REUNITE, _limits(cooldown_seconds=0.0)),
    "a VM is moved as soon as it is apart": Mutation(REUNITE, _limits(apart_seconds=0.0)),
    "the back-off is forgotten": Mutation(REUNITE, _limits(backoff_seconds=0.0)),
    "the budget of the cluster is forgotten": Mutation(REUNITE, _limits(at_once=100)),
    "the budget of a node is forgotten": Mutation(REUNITE, _limits(at_once_per_node=100)),
    "a named target is no will": Mutation(REUNITE, _sees(names_target=False)),
    "an evacuation is not seen": Mutation(REUNITE, _sees(evacuates=None)),
    "own migrations are not recognized": Mutation(REUNITE, _sees(ours=False, names_target=False)),
    "stuck VMs are not freed": Mutation(REUNITE, _frees_nobody, spoil),
    "the home node is guessed": Mutation(REUNITE, _guesses_home),
}
