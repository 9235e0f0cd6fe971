"""Planted faults: each makes one part of the program or of the cluster wrong, and breaks one invariant.

A fault is planted at a seam that the simulation has anyway. Seams are what a watch delivers, a view answers and an
answer says, and what the program `reunite` sees and may do.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from webhook.core.admit import Answer, PodCreation
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.reasons import ANNOTATION_DECISION
from webhook.core.scheduler.cache import AnySnapshot, SnapshotUnavailable
from webhook.core.view import Kind
from webhook.kube.cache.view import CallView

if TYPE_CHECKING:
    from simulation.watcher import Watcher
    from simulation.world import World

_AFFINITY: Final = "/spec/affinity"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
Fault = Callable[["World"], object]
Edit = Callable[[list[dict[str, Any]]], object]


class PlantedFault(NamedTuple):
    """A planted fault.

    Attributes:
        fault: what it does to a world.
        breaks: the invariant that it breaks.
        reunite: how many processes of the program run.
        seed: one that draws what shows it.
    """

    fault: Fault
    breaks: str
    reunite: int = 0
    seed: int = 1


def loses(kind: Kind, says: Callable[[dict[str, Any]], bool]) -> Fault:
    """No replica gets an event of this kind that `says` is true for."""

    def break_it(world: World) -> None:
        for replica in world.replicas:
            replica.lost = lambda each, event: each is kind and says(json.loads(event))

    return break_it


def is_deleted(event: dict[str, Any]) -> bool:
    """Whether an object is deleted, or is to be deleted."""
    return event["type"] == "DELETED" or "deletionTimestamp" in event["object"]["metadata"]


def views(type_: type[CallView]) -> Fault:
    """Every replica answers by such views."""

    def break_it(world: World) -> None:
        for replica in world.replicas:
            replica.view_type = type_

    return break_it


class PodsUncounted(CallView):
    """Other pods are not counted."""

    def snapshot(self) -> AnySnapshot:
        """Answer wrongly."""
        found = super().snapshot()
        if isinstance(found, SnapshotUnavailable):
            return found
        infos = {name: found.node_info(name) for name in self.node_names()}
        nodes = {name: info.node for name, info in infos.items()}
        return ListedSnapshot((), nodes, {name: info.csi_drivers for name, info in infos.items()})


def answers(title: str, edit: Edit) -> Fault:
    """Change the patch of each answer for a kind of pod, where there is one."""

    def change(creation: PodCreation, answer: Answer, _: Watcher) -> Answer:
        response = json.loads(answer.body)
        if creation.entry.title != title or "patch" not in response["response"]:
            return answer
        operations = json.loads(base64.b64decode(response["response"]["patch"]))
        edit(operations)
        response["response"]["patch"] = base64.b64encode(json.dumps(operations).encode()).decode()
        return replace(answer, body=msgspec.json.encode(response))

    def break_it(world: World) -> None:
        world.webhook.change = change

    return break_it


def names_another_node(operations: list[dict[str, Any]]) -> None:
    """Write another node into the annotation."""
    for operation in operations:
        text = json.dumps(operation["value"])
        if ANNOTATION_DECISION.partition("/")[2] in f"{operation['path']}{text}":
            operation["value"] = json.loads(text.replace("node-0", "node-1"))


def requires_too(operations: list[dict[str, Any]]) -> None:
    """Require what the patch prefers."""
    for each in operations:
        value = each["value"]
        if each["path"].startswith(_AFFINITY) and isinstance(value, dict):
            near = value["podAffinity"]
            near[_REQUIRED] = [term["podAffinityTerm"] for term in near[_PREFERRED]]


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


PLANTED_FAULTS: Final = {
    "a share-manager pod's delete is lost": PlantedFault(loses(Kind.SHARE_MANAGER_POD, is_deleted), "evidence"),
    "changes of nodes are lost": PlantedFault(loses(Kind.NODE, lambda event: event["type"] == "MODIFIED"), "cordon"),
    "other pods are not counted": PlantedFault(views(PodsUncounted), "stranded"),
    "a share-manager pod must be near its VM": PlantedFault(answers("share-manager", requires_too), "target"),
    "the annotation names another node": PlantedFault(answers("virt-launcher", names_another_node), "told"),
    "a VM is moved as soon as it is apart": PlantedFault(limits(apart_seconds=0.0), "too soon", reunite=1),
    "the turns are forgotten": PlantedFault(limits(at_once=100), "budget", reunite=1, seed=6),
    "own migrations are not recognized": PlantedFault(sees_no_labels, "failures", reunite=1),
    "the home node is guessed": PlantedFault(guesses_home, "home", reunite=1),
}
