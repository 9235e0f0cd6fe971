"""What makes one part of the program or of the cluster faulty.

A fault is planted at a seam that the simulation has anyway. Seams are what a watch delivers, a view answers and an
answer says, what the program `reunite` sees and may do, and what the models of the cluster keep to.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace
from simulation.admission import entry_title

from webhook.core.admit import Answer, PodCreation
from webhook.core.decision import Leave, Pin
from webhook.core.reasons import ANNOTATION_DECISION
from webhook.core.view import Kind
from webhook.kube.cache.view import CallView

if TYPE_CHECKING:
    from simulation.watcher import Watcher
    from simulation.world import World

_AFFINITY: Final = "/spec/affinity"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_MINUTE: Final = 60.0
Fault = Callable[["World"], object]
Edit = Callable[[list[dict[str, Any]]], object]


# What watches deliver.


def loses(kind: Kind, says: Callable[[dict[str, Any]], bool]) -> Fault:
    """No replica gets an event of this kind that `says` is true for."""

    def break_it(world: World) -> None:
        for replica in world.replicas:
            replica.watcher.lost = lambda each, event: each is kind and says(json.loads(event))

    return break_it


def is_late(kind: Kind) -> Fault:
    """The watch of this kind is a minute late for every replica."""

    def break_it(world: World) -> None:
        for replica in world.replicas:
            replica.watcher.late[kind] = _MINUTE

    return break_it


def restarts_as_it_was(world: World) -> None:
    """A replica that restarts lists nothing, and takes its old caches for the cluster."""
    for replica in world.replicas:
        replica.watcher.restart = lambda: None


# What views answer.


def views(type_: type[CallView]) -> Fault:
    """Every replica answers by such views."""

    def break_it(world: World) -> None:
        for replica in world.replicas:
            replica.watcher.view_type = type_

    return break_it


# What answers say.


def answers(title: str, edit: Edit, *, required: bool | None = None) -> Fault:
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

    return changing(change)


def changing(change: Callable[[PodCreation, Answer, Watcher], Answer]) -> Fault:
    """Each answer is changed before it is sent."""

    def break_it(world: World) -> None:
        world.webhook.change = change

    return break_it


def in_annotation(old: str, new: str) -> Edit:
    """The annotation has a new text in place of an old one."""

    def edit(operations: list[dict[str, Any]]) -> None:
        for operation in operations:
            text = json.dumps(operation["value"])
            if ANNOTATION_DECISION.partition("/")[2] in f"{operation['path']}{text}":
                operation["value"] = json.loads(text.replace(old, new))

    return edit


def without_affinity(operations: list[dict[str, Any]]) -> None:
    """Leave the affinity out."""
    operations[:] = [each for each in operations if not each["path"].startswith(_AFFINITY)]


def hard(operations: list[dict[str, Any]]) -> None:
    """Make preferences requirements."""
    for each in operations:
        value = each["value"]
        if not each["path"].startswith(_AFFINITY) or not isinstance(value, dict):
            continue
        if near := value.get("podAffinity", {}).pop(_PREFERRED, []):
            value["podAffinity"][_REQUIRED] = [term["podAffinityTerm"] for term in near]
        if nodes := value.get("nodeAffinity", {}).pop(_PREFERRED, []):
            value["nodeAffinity"][_REQUIRED] = {"nodeSelectorTerms": [term["preference"] for term in nodes]}


def logs_unchanged(_: PodCreation, answer: Answer, __: Watcher) -> Answer:
    """The audit log says that the pod was not changed."""
    return replace(answer, audit_annotations={**answer.audit_annotations, "decision": "unchanged"})


def says_leave(_: PodCreation, answer: Answer, __: Watcher) -> Answer:
    """The decision is to leave the pod as it is, and the patch is sent."""
    if not isinstance(answer.decision, Pin):
        return answer
    told = {**answer.audit_annotations, "decision": "unchanged"}
    return replace(answer, decision=Leave(why=answer.decision.why), audit_annotations=told)


# What the program reunite sees, and may do.


def limits(**changed: Any) -> Fault:
    """The options of `reunite` are others."""

    def break_it(world: World) -> None:
        for each in world.reuniting:
            each.settings = {**each.settings, **changed}

    return break_it


def sees_no_labels(world: World) -> None:
    """A run sees migrations without the label of `reunite`."""
    for each in world.reuniting:
        each.edit = lambda seen: {**seen, "metadata": {**seen["metadata"], "labels": {}}}


def guesses_home(world: World) -> None:
    """A migration of `reunite` leads to the node before the home node."""
    create, nodes = world.migrations.create, list(world.nodes.states)

    def elsewhere(vm: Any, by: str, node: str = "", *more: Any) -> Any:
        return create(vm, by, nodes[nodes.index(node) - 1] if by == "reunite" else node, *more)

    world.migrations.create = elsewhere  # type: ignore[method-assign]


def without_entry(title: str) -> Fault:
    """The webhook is not asked about such pods."""

    def break_it(world: World) -> None:
        asked = world.creation.webhook
        world.creation.webhook = lambda pod: pod if entry_title(pod) == title else asked(pod)

    return break_it


def is_deleted(event: dict[str, Any]) -> bool:
    """Whether an object is deleted, or is to be deleted."""
    return event["type"] == "DELETED" or "deletionTimestamp" in event["object"]["metadata"]


def has_ended(event: dict[str, Any]) -> bool:
    """Whether a ShareManager has no server any more."""
    return event["object"]["status"].get("state") in ("stopping", "stopped", "error")
