"""Checks of each answer of the webhook: evidence, target, told, cordon."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING, Final

from simulation.admission import Admitted, entry_title, named_nodes, node_affinity, required_nodes
from simulation.api_server import LONGHORN, POD, SHARE_MANAGER, Object
from simulation.kube_scheduler import near_weights

from webhook.core.decision import Leave, Pin
from webhook.core.reasons import ANNOTATION_DECISION, Reason
from webhook.core.view import Kind

if TYPE_CHECKING:
    from simulation.world import World

Breaks = Callable[[str, str], AssertionError]
STALE_SECONDS: Final = 10.0  # webhook.kube.informer.connection, STALE_AFTER_SECONDS
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_LAST_HOMES: Final = 12
_ASSIGNED: Final = ("running", "starting")
_WAITS: Final = "waits for a node"


class AnswerChecks:
    """Checks each answer.

    Attributes:
        checked: how many answers.
        pinned: how many of them require a node.
        asked: the last answer for a VM, by the uid of its VirtualMachineInstance.
    """

    def __init__(self, world: World, broken: Breaks) -> None:
        self.world = world
        self.broken = broken
        self.checked = self.pinned = 0
        self.asked: dict[str, Admitted] = {}
        self._pods: dict[str, deque[tuple[float, str]]] = defaultdict(lambda: deque(maxlen=_LAST_HOMES))
        self._owners: dict[str, deque[tuple[float, str]]] = defaultdict(lambda: deque(maxlen=_LAST_HOMES))
        world.api.listeners.append(self._changed)
        world.webhook.admitted.append(self._admitted)

    def _changed(self, kind: Kind, key: str, _: Object | None) -> None:
        if kind is Kind.SHARE_MANAGER:
            self._note_home(key.removeprefix(f"{LONGHORN}/"))
        elif kind is POD and key.startswith(SHARE_MANAGER):
            self._note_home(key.removeprefix(SHARE_MANAGER))

    def _note_home(self, volume: str) -> None:
        """Note the node of the live pod, and the ownerID of an assigned share-manager, from now on; empty for none."""
        pod, known = self.world.longhorn.pod(volume), self.world.longhorn.volumes[volume]
        live = pod if pod and "deletionTimestamp" not in pod["metadata"] else None
        now = self.world.engine.now
        self._pods[volume].append((now, (live["spec"].get("nodeName") or _WAITS) if live else ""))
        self._owners[volume].append((now, known.owner if known.state in _ASSIGNED else ""))

    def was_home(self, volume: str, node: str) -> bool:
        """Whether the node was evidence of the volume within STALE_SECONDS.

        That is the node of the live pod, or else ownerID: a terminating pod is none (tests/cases/evidence.yaml). A
        replica follows both by watches of their own, so one of them can be older than the other.
        """
        pods, owners = self._values(self._pods[volume]), self._values(self._owners[volume])
        return node in pods or ("" in pods and node in owners)

    def _values(self, noted: Iterable[tuple[float, str]]) -> set[str]:
        """The values of the last STALE_SECONDS."""
        entries = list(noted)
        ends = [at for at, _ in entries[1:]] + [self.world.engine.now]
        oldest = self.world.engine.now - STALE_SECONDS
        return {value for (_, value), end in zip(entries, ends, strict=False) if end >= oldest}

    def _admitted(self, admitted: Admitted) -> None:
        self.checked += 1
        decision, title = admitted.answer.decision, entry_title(admitted.pod)
        self.pinned += isinstance(decision, Pin) and bool(decision.required)
        self._told(admitted)
        if title != "virt-launcher":
            if _requirements(admitted.after) != _requirements(admitted.pod):
                raise self.broken("target", f"a {title} pod has the requirements {_requirements(admitted.after)}")
            return
        vm = self.world.virt.vm_of(admitted.pod)
        self.asked[vm.uid] = admitted
        for node in decision.required if isinstance(decision, Pin) else ():
            if not any(self.was_home(volume, node) for volume in vm.volumes):
                raise self.broken("evidence", f"{vm.name} must run on {node}, and no share-manager of it was there")

    def _told(self, admitted: Admitted) -> None:
        answer, after = admitted.answer, admitted.after
        note = (after["metadata"].get("annotations") or {}).get(ANNOTATION_DECISION)
        required, preferred = required_nodes(after), preferred_nodes(after)
        if isinstance(answer.decision, Leave):
            done = "unchanged"
            if after["spec"] != admitted.pod["spec"]:
                raise self.broken("told", f"the answer is unchanged, and the pod was changed: {note}")
        else:
            done = "required" if answer.decision.required and required else "preferred"
            missing = set(answer.decision.nodes) - (required if done == "required" else preferred)
            if missing:
                raise self.broken("told", f"{sorted(missing)} are in the answer, and not in the pod's affinity")
            if note is None or not all(node in note for node in answer.decision.nodes[:1]):
                raise self.broken("told", f"the annotation does not name {answer.decision.nodes[0]}: {note!r}")
        logged = answer.audit_annotations["decision"]
        if logged != done or (note is not None and note.partition(" ")[0].rstrip(":") != done):
            raise self.broken("told", f"done was {done}, the audit log has {logged}, and the annotation {note!r}")


class CordonChecks:
    """Checks what an answer says of cordoned nodes: true now, or at a time at most STALE_SECONDS ago.

    A VM is not pinned to a node that is cordoned for longer. No reason says that a node is cordoned which has not been
    cordoned for longer.
    """

    def __init__(self, world: World, broken: Breaks) -> None:
        self.world = world
        self.broken = broken
        self._cordoned: dict[str, float] = {}  # since when, for a node that is cordoned now
        self._uncordoned: dict[str, float] = {}  # the end of the last cordon
        world.api.listeners.append(self._changed)
        world.webhook.admitted.append(self._admitted)

    def _changed(self, kind: Kind, name: str, node: Object | None) -> None:
        if kind is not Kind.NODE or node is None:
            return
        now = self.world.engine.now
        if node["spec"].get("unschedulable"):
            self._cordoned.setdefault(name, now)
        elif self._cordoned.pop(name, None) is not None:
            self._uncordoned[name] = now

    def _admitted(self, admitted: Admitted) -> None:
        decision, oldest = admitted.answer.decision, admitted.at - STALE_SECONDS
        for node in decision.required if isinstance(decision, Pin) else ():
            if self._cordoned.get(node, inf) < oldest:
                raise self.broken("cordon", f"{node} is required, and cordoned since {self._cordoned[node]:.0f}")
        for fit in decision.node_fits:
            said = fit.why.reason is Reason.NODE_CORDONED
            if said and fit.node not in self._cordoned and self._uncordoned.get(fit.node, -inf) < oldest:
                raise self.broken("cordon", f"the answer says that {fit.node} is cordoned, and it is not")


def preferred_nodes(pod: Object) -> set[str]:
    """Return the nodes that the pod's affinity prefers, by their names or by their instance-manager pods."""
    preferred = node_affinity(pod).get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return named_nodes([each["preference"] for each in preferred]) | set(near_weights(pod))


def _requirements(pod: Object) -> list[object]:
    affinity = pod["spec"].get("affinity") or {}
    return [(affinity.get(kind) or {}).get(_REQUIRED) for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity")]
