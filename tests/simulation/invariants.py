"""What holds after every step, whatever the seed draws. A broken invariant names the seed and how to replay it.

- evidence: a required node was the node of one of the VM's share-managers at a time not more than STALE_SECONDS ago.
- stranded: no virt-launcher pod waits longer than STRANDED_SECONDS because of what we wrote, while a node without our
  terms would take it. Excepted is a node that changed after the evidence was read: cordoned, lost or filled by a pod
  that nobody asked us about. Such a pod is the matter of the rule that frees stuck VMs.
- told: the pod's annotation says what its affinity does, and its affinity does what the audit annotations say.
- one: a VM has at most one unfinished migration, and runs in one pod.
- budget: KubeVirt's limits on migrations hold.
- target: what we write on a migration's target or on a share-manager pod is never a requirement.
- room: no node has more pods than it has resources for.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

from simulation.admission import Admitted, entry_title
from simulation.api_server import LONGHORN, POD, Object, is_virt_launcher
from simulation.migrations import PARALLEL_IN_CLUSTER, PARALLEL_OUT_OF_NODE, Migration

from webhook.core.decision import Leave, Pin
from webhook.core.reasons import ANNOTATION_DECISION
from webhook.core.view import Kind

if TYPE_CHECKING:
    from simulation.world import World

STALE_SECONDS: Final = 10.0  # webhook.kube.informer.freshness, STALE_AFTER_SECONDS
STRANDED_SECONDS: Final = 60.0  # issue 15, section 3: so long until a stuck VM is freed
_LAST_NODES: Final = 8


class Broken(AssertionError):
    """An invariant does not hold."""


class Invariants:
    """Follows a world and checks it after every step."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.checked = 0
        self._homes: dict[str, deque[tuple[float, str]]] = defaultdict(lambda: deque(maxlen=_LAST_NODES))
        self._node_changed: dict[str, float] = {}
        self._pinned_at: dict[str, tuple[float, Object]] = {}
        self._forgiven: set[str] = set()
        world.api.listeners.append(self._changed)
        world.migrations.listeners.append(self._migration)
        if world.webhook:
            world.webhook.admitted.append(self._admitted)
        step = world.engine.after_step

        def after_step() -> None:
            step()
            self._stranded()

        world.engine.after_step = after_step
        for volume, each in world.longhorn.volumes.items():
            self._homes[volume].append((0.0, each.owner))

    def broken(self, invariant: str, what: str) -> Broken:
        """Return the error, with the command that replays it exactly."""
        world = self.world
        trace = "\n  ".join(world.engine.last_lines)
        replay = world.replay
        return Broken(f"{invariant}: {what}\nseed {world.engine.seed}: {replay}\n  {trace}")

    # Evidence.

    def _changed(self, kind: Kind, key: str, value: Object | None) -> None:
        now = self.world.engine.now
        if kind is Kind.NODE:
            self._node_changed[key] = now
        elif kind is Kind.SHARE_MANAGER and value is not None:
            self._homes[key.removeprefix(f"{LONGHORN}/")].append((now, value["status"].get("ownerID") or ""))
        elif kind is POD and key.startswith(f"{LONGHORN}/share-manager-"):
            node = (value or {}).get("spec", {}).get("nodeName") or ""
            self._homes[key.removeprefix(f"{LONGHORN}/share-manager-")].append((now, node))
        elif kind is POD and value is not None and is_virt_launcher(value):
            self._room(value)

    def _was_home(self, volume: str, node: str) -> bool:
        """Whether the node was evidence of the volume within STALE_SECONDS, by its pod or by its ownerID."""
        world = self.world
        pod = world.longhorn.pod(volume)
        if (pod and pod["spec"].get("nodeName") == node) or world.longhorn.volumes[volume].owner == node:
            return True
        homes = list(self._homes[volume])
        ends = [at for at, _ in homes[1:]] + [world.engine.now]
        return any(
            each == node and end >= world.engine.now - STALE_SECONDS for (_, each), end in zip(homes, ends, strict=True)
        )

    def _admitted(self, admitted: Admitted) -> None:
        self.checked += 1
        decision, title = admitted.answer.decision, entry_title(admitted.pod)
        self._told(admitted)
        if not isinstance(decision, Pin):
            return
        if title != "virt-launcher":
            if decision.required:
                raise self.broken("target", f"a {title} pod is required on {decision.required}")
            return
        vm = self.world.virt.vm_of(admitted.pod)
        for node in decision.required:
            if not any(self._was_home(volume, node) for volume in vm.volumes):
                raise self.broken("evidence", f"{vm.name} is required on {node}, and no share-manager of it was there")
        if decision.required or decision.shortlist:
            self._pinned_at[vm.uid] = (admitted.at, admitted.pod)

    # Told.

    def _told(self, admitted: Admitted) -> None:
        answer, after = admitted.answer, admitted.after
        note = (after["metadata"].get("annotations") or {}).get(ANNOTATION_DECISION)
        required, preferred = _written(after)
        told = answer.audit_annotations["decision"]
        if isinstance(answer.decision, Leave):
            done = "unchanged"
            if after["spec"] != admitted.pod["spec"]:
                raise self.broken("told", f"the answer is unchanged, and the pod was changed: {note}")
        else:
            done = "required" if required & set(answer.decision.nodes) and answer.decision.required else "preferred"
            missing = set(answer.decision.nodes) - (required | preferred)
            if missing:
                raise self.broken("told", f"{sorted(missing)} are in the answer, and not in the pod's affinity")
        if told != done:
            raise self.broken("told", f"the audit log has {told}, and done was {done}")
        if note is not None and note.partition(" ")[0].rstrip(":") != done:
            raise self.broken("told", f"the annotation says {note!r}, and done was {done}")

    # Stranded.

    def _stranded(self) -> None:
        scheduler, now = self.world.scheduler, self.world.engine.now
        for key, since in scheduler.waiting.items():
            if now - since > STRANDED_SECONDS and key not in self._forgiven:
                self._forgiven.add(key)
                self._judge_waiting(key)

    def _judge_waiting(self, key: str) -> None:
        pod = self.world.api.pod(key)
        if pod is None or not is_virt_launcher(pod) or entry_title(pod) != "virt-launcher":
            return
        vm = self.world.virt.vm_of(pod)
        pinned = self._pinned_at.get(vm.uid)
        if pinned is None or pod["spec"].get("affinity") == pinned[1]["spec"].get("affinity"):
            return
        others = self.world.scheduler.feasible({**pinned[1], "metadata": pod["metadata"]})
        if not others:
            return
        required, _ = _written(pod)
        if not any(self._node_changed.get(node, 0.0) >= pinned[0] - STALE_SECONDS for node in required):
            raise self.broken("stranded", f"{vm.name} waits for {sorted(required)}, and would fit on {others}")
        self.world.freed_by_nobody += 1

    # Migrations and nodes.

    def _migration(self, migration: Migration) -> None:
        world = self.world
        unfinished = [each for each in world.migrations.unfinished if each.vm is migration.vm]
        if len(unfinished) > 1:
            raise self.broken("one", f"{migration.vm.name} has {len(unfinished)} unfinished migrations")
        running = world.migrations.running()
        if len(running) > PARALLEL_IN_CLUSTER:
            raise self.broken("budget", f"{len(running)} migrations run")
        leaving = sum(each.source == migration.source for each in running)
        if migration.source and leaving > PARALLEL_OUT_OF_NODE:
            raise self.broken("budget", f"{leaving} migrations leave {migration.source}")

    def _room(self, pod: Object) -> None:
        node = pod["spec"].get("nodeName")
        if not node:
            return
        state = self.world.scheduler.state(node)
        if state.requested.memory > state.has.memory or state.requested.cpu > state.has.cpu:
            raise self.broken("room", f"{node} has {state.requested} requested of {state.has}")
        others = self.world.api.pods_of_vmi[pod["metadata"]["labels"]["kubevirt.io/created-by"]].values()
        there = [
            each for each in others if each["spec"].get("nodeName") == node and each["status"].get("phase") in _LIVE
        ]
        if len(there) > 1:
            raise self.broken("one", f"two pods of {self.world.virt.vm_of(pod).name} are on {node}")


_LIVE: Final = ("Pending", "Running")


def _written(pod: Object) -> tuple[set[str], set[str]]:
    """Return the nodes that the pod's affinity requires and prefers, by their names."""
    node_affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = (node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get(
        "nodeSelectorTerms"
    ) or []
    preferred = node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return set(_names(required)), set(_names([each["preference"] for each in preferred]))


def _names(terms: list[Object]) -> list[str]:
    fields = [field for term in terms for field in term.get("matchFields") or () if field["operator"] == "In"]
    return [value for field in fields for value in field["values"]]
