"""What each of the compared rules does: at a pod's CREATE, in kube-scheduler, and each hour.

The rules of peers are written from their documents:

- kubevirt-scheduler (MichaelTrip/kubevirt-scheduler on GitHub, README and pkg/plugins/longhorn_cosched): a Filter and
  a Score plugin for virt-launcher pods that opt in, migration targets excepted. Only the node of
  ShareManager.status.ownerID passes while the share-manager is running or starting (since commit b2924a6, 2026-02-25).
  Else the node of the running share-manager pod passes, and without one every node. Nothing steers that pod.
- "by hostname label": a webhook that prefers `kubernetes.io/hostname` of status.ownerID, with weight 100.
- "share-manager pods only": a webhook that prefers the node of the running share-manager pod, with weight 100.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from simulation.admission import Replica, Replicas, Webhook, entry_title
from simulation.api_server import LONGHORN, Object
from simulation.engine import HOUR, rfc3339
from simulation.migration import HOSTNAME
from simulation.reuniting import Reuniting
from simulation.watcher import Watcher

from webhook.core.admit import Entry
from webhook.core.observe.vm_status import State
from webhook.core.view import Kind

if TYPE_CHECKING:
    from simulation.world import World

_REPLICAS: Final = 2
_EVERY_STATE: Final = ("running", "starting", "stopping", "stopped", "error", "unknown", "")


class Policy(NamedTuple):
    """One of the compared rules.

    Attributes:
        title: what the table calls it.
        webhook: makes what the API server asks at a pod's CREATE.
        install: adds what runs besides: a plugin of kube-scheduler, or something periodic.
        ours: whether the invariants about our promises hold for it.
    """

    title: str
    webhook: Callable[[World], Webhook]
    install: Callable[[World], object] = lambda _: None
    ours: bool = False


def _nothing(_: World) -> Webhook:
    return lambda pod: pod


def _replicas(*titles: str) -> Callable[[World], Webhook]:
    def install(world: World) -> Webhook:
        rng = world.engine.rng("watch delays")

        def lag(_: Kind) -> float:
            return rng.uniform(0.002, 0.03)

        entries = [entry for entry in Entry if entry.title in titles]
        world.replicas = [
            Replica(Watcher(f"replica {index}", world.engine, world.api, lag)) for index in range(_REPLICAS)
        ]
        world.watchers += [replica.watcher for replica in world.replicas]
        world.webhook = Replicas(world.engine, world.replicas, entries)
        return world.webhook

    return install


def _plan_each_hour(world: World) -> None:
    """Carry out `reunite -o yaml --now` each hour: a migration to the one node of a VM's share-managers."""
    for vm in world.virt.vms.values():
        at = rfc3339(int(world.engine.now))
        row = world.account.stored.row(vm.uid, at) if vm.running and not vm.migration else None
        if row and row.state is State.APART:
            homes = {volume.node for volume in row.volumes if volume.node}
            if len(homes) == 1 and (home := homes.pop()) in world.nodes.usable():
                world.migrations.create(vm, "plan", node=home)
    world.engine.after(HOUR, lambda: _plan_each_hour(world))


def _plan(world: World) -> None:
    world.engine.after(HOUR, lambda: _plan_each_hour(world))


# Peers.


def _owner(world: World, pod: Object, states: Container[str] = _EVERY_STATE) -> str:
    """Return status.ownerID of the first share-manager of a pod, if it is in one of these states."""
    vm = world.virt.vm_of(pod)
    found = world.api.get(Kind.SHARE_MANAGER, f"{LONGHORN}/{vm.volumes[0]}")
    status = (found or {}).get("status", {})
    return str(status.get("ownerID") or "") if status.get("state") in states else ""


def _running_pod_node(world: World, pod: Object) -> str:
    """Return the node of the first share-manager pod of a pod, if that one runs."""
    found = world.longhorn.pod(world.virt.vm_of(pod).volumes[0])
    running = found is not None and found["status"].get("phase") == "Running"
    return str(found["spec"].get("nodeName") or "") if found and running else ""


def _scheduler_plugin(world: World) -> None:
    def passes(pod: Object, node: Object) -> bool:
        if entry_title(pod) != "virt-launcher":
            return True
        wanted = _owner(world, pod, ("running", "starting")) or _running_pod_node(world, pod)
        return not wanted or bool(node["metadata"]["name"] == wanted)

    world.scheduler.extender = passes


def _preferring(find: Callable[[World, Object], str], term: Callable[[str], Object]) -> Callable[[World], Webhook]:
    def install(world: World) -> Webhook:
        def change(pod: Object) -> Object:
            node = find(world, pod) if entry_title(pod) == "virt-launcher" else ""
            if not node:
                return pod
            terms: list[Any] = [{"weight": 100, "preference": term(node)}]
            affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
            return {**pod, "spec": {**pod["spec"], "affinity": affinity}}

        return change

    return install


def _by_label(node: str) -> Object:
    return {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}


_OURS: Final = ("virt-launcher", "share-manager")
NONE: Final = Policy("none", _nothing)


def _reunite(world: World) -> None:
    Reuniting(world, "reunite").begin()


OURS: Final = Policy("ours", _replicas(*_OURS), ours=True)
PLAN: Final = Policy("ours + plan each hour", _replicas(*_OURS), _plan, ours=True)
REUNITE: Final = Policy("ours + reunite", _replicas(*_OURS), _reunite, ours=True)
TWICE: Final = REUNITE._replace(
    title="ours + reunite twice",
    install=lambda world: [Reuniting(world, f"reunite {number}").begin() for number in (1, 2)],
)
PEERS: Final = (
    Policy("scheduler plugin by ownerID", _nothing, _scheduler_plugin),
    Policy("webhook, prefers by hostname label", _preferring(_owner, _by_label)),
    Policy("webhook, share-manager pods only", _preferring(_running_pod_node, _by_label)),
)
COMPARED: Final = (NONE, OURS, REUNITE, PLAN, *PEERS)
POLICIES: Final = {policy.title: policy for policy in (*COMPARED, TWICE)}
