"""What holds after every step, whatever the seed draws. A broken invariant names the seed and how to replay it.

- evidence: a required node had the share-manager of one of the VM's volumes at a time at most STALE_SECONDS ago.
- cordon: no required node is cordoned for longer than STALE_SECONDS. A node that is called cordoned is, or was then.
- target: what we write on a migration's target or on a share-manager pod is never a requirement.
- told: the annotation and the audit log say what the pod's affinity does. What `reunite` tells of a VM's past is true.
- stranded: no virt-launcher pod waits longer than STRANDED_SECONDS because of what we wrote.
- budget, busy, home, calm, will, others, failures, too soon: what reunite promises of a migration.
- starved: no healthy VM waits in two runs for a VM whose migrations do not end well.

A pod that our terms keep waiting is stranded. Excepted is a pod one of whose nodes has changed since the evidence was
read: it was cordoned or lost, or a pod took the room on which the replica that answered could not count. Such a pod
came within the delay of a slow watch. Another replica answered for it, or none did, or it got no term for this node and
can go to any (docs/concepts/full-nodes.md, What remains). It carries no pin: replicas count the pins of one another by
their shares (decision 0008).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from simulation.admission import Admitted, entry_title, required_nodes
from simulation.api_server import POD, Object, is_virt_launcher
from simulation.check_answers import STALE_SECONDS, AnswerChecks, Breaks, CordonChecks, preferred_nodes
from simulation.check_moves import MoveChecks
from simulation.faults import SLOWEST_WATCH_SECONDS
from simulation.kube_scheduler import requests

from webhook.core.view import Kind

if TYPE_CHECKING:
    from simulation.world import World


STRANDED_SECONDS: Final = 60.0  # so long kube-scheduler may need by itself
_LOOK_SECONDS: Final = 2.0


class Broken(AssertionError):
    """An invariant does not hold. The text begins with its name."""


class NodeChecks:
    """Checks pods that wait."""

    def __init__(self, world: World, broken: Breaks, asked: Mapping[str, Admitted]) -> None:
        self.world = world
        self.broken = broken
        self._asked = asked
        self._node_changed: dict[str, float] = {}
        self._bound: dict[str, float] = {}
        self._judged: set[str] = set()
        self._fits_since: dict[str, float] = {}
        self._looked_at = 0.0
        world.api.listeners.append(self._changed)

    def step(self) -> None:
        """Look at every pod that waits, each few seconds; judge one that could have been elsewhere for long enough."""
        now = self.world.engine.now
        if not self.world.scheduler.waiting or now < self._looked_at + _LOOK_SECONDS:
            return
        self._looked_at = now
        for key in list(self.world.scheduler.waiting):
            others = self._others(key)
            if not others:
                self._fits_since.pop(key, None)
                continue
            if now - self._fits_since.setdefault(key, now) > STRANDED_SECONDS and key not in self._judged:
                self._judged.add(key)
                self._judge(key, others)

    def _changed(self, kind: Kind, key: str, value: Object | None) -> None:
        if kind is Kind.NODE:
            self._node_changed[key] = self.world.engine.now
        elif kind is POD and value is not None and value["spec"].get("nodeName") and is_virt_launcher(value):
            self._bound.setdefault(key, self.world.engine.now)

    def _others(self, key: str) -> list[str]:
        """Return the nodes that would take a waiting pod without our requirement; none if it has none of ours."""
        pod = self.world.api.pod(key)
        if pod is None or entry_title(pod) != "virt-launcher":
            return []
        asked = self._asked.get(self.world.virt.vm_of(pod).uid)
        before = asked.pod if asked else pod
        if required_nodes(pod) == required_nodes(before):
            return []
        return self.world.scheduler.feasible({**before, "metadata": pod["metadata"]})

    def _judge(self, key: str, others: list[str]) -> None:
        pod = self.world.api.pod(key)
        assert pod is not None
        vm, nodes = self.world.virt.vm_of(pod), required_nodes(pod)
        asked = self._asked[vm.uid]
        if any(self._node_changed.get(node, 0.0) >= asked.at - STALE_SECONDS for node in nodes) or any(
            self._filled_unseen(node, pod, asked) for node in nodes
        ):
            return
        since = self._fits_since[key]
        raise self.broken(
            "stranded", f"{vm.name} waits for {sorted(nodes)}; since {since:.0f} it would fit on {others}"
        )

    def _filled_unseen(self, node: str, pod: Object, asked: Admitted) -> bool:
        """Whether the pod would have room on the node without pods of which the replica could not know."""
        state = self.world.scheduler.states[node]
        unseen = [requested for key, requested in state.pods.items() if self._unseen(key, node, asked)]
        return requests(pod) - sum(unseen) <= state.free

    def _unseen(self, key: str, node: str, asked: Admitted) -> bool:
        """Whether a pod on the node came too late for the watch of the replica, and not by a term of this replica."""
        other = self.world.api.pod(key)
        if other is None or self._bound.get(key, 0.0) < asked.at - SLOWEST_WATCH_SECONDS or required_nodes(other):
            return False
        answer = self._asked.get(self.world.virt.vm_of(other).uid) if entry_title(other) == "virt-launcher" else None
        return answer is None or answer.replica is not asked.replica or node not in preferred_nodes(other)


class Invariants:
    """Follows a world and checks it after every step.

    Attributes:
        answers: the checks of what the webhook answers.
        moves: the checks of migrations.
    """

    def __init__(self, world: World, replay: str) -> None:
        """`replay`: the command that plays this world again."""
        self.world = world
        self.replay = replay
        self.answers = AnswerChecks(world, self.broken)
        CordonChecks(world, self.broken)
        self.moves = MoveChecks(world, self.broken)
        self._nodes = NodeChecks(world, self.broken, self.answers.asked)
        world.engine.after_step = self._after_step

    def _after_step(self) -> None:
        self.moves.apart.step()
        self._nodes.step()

    def broken(self, invariant: str, what: str) -> Broken:
        """Return the error, with the command that replays it exactly."""
        engine, trace = self.world.engine, "\n  ".join(self.world.engine.last_lines)
        return Broken(f"{invariant}: {what}\nseed {engine.seed}: {self.replay}\n  {trace}")
