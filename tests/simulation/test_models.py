"""Each model against the facts that it follows: times and limits of the upstream programs, as they were measured."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from simulation.account import LOCAL
from simulation.api_server import LONGHORN, POD, Object
from simulation.engine import HOUR, Engine
from simulation.kube_scheduler import KubeScheduler, _to_find
from simulation.month import SHORT, Workload
from simulation.node_state import Requests, requests
from simulation.policies import NONE, OURS
from simulation.vm import VM
from simulation.world import World
from support.objects import builders

from webhook.core.view import Kind

QUIET = Workload(nodes=4, vms=6, user_migrations=0, node_losses_days=(), power_cut_day=None)


@pytest.fixture
def quiet() -> World:
    """Four nodes and six VMs that run, and nobody who does anything."""
    world = World(NONE, 3, QUIET)
    for vm in world.virt.vms.values():
        world.virt.start(vm)
    world.run(HOUR)
    assert all(vm.running for vm in world.virt.vms.values())
    return world


def until(world: World, holds: Callable[[], bool], most: float = HOUR) -> float:
    """Run in small steps until something holds, and return the seconds that it took."""
    began = world.engine.now
    while not holds():
        assert world.engine.now < began + most, "it never held"
        world.run(world.engine.now + 0.05)
    return world.engine.now - began


def busiest(world: World) -> tuple[str, list[VM]]:
    """Return the node with the most VMs, and its VMs."""
    by_node: dict[str, list[VM]] = {}
    for vm in world.virt.vms.values():
        by_node.setdefault(world.virt.node_of(vm), []).append(vm)
    return max(by_node.items(), key=lambda item: len(item[1]))


def home(world: World, vm: VM) -> str:
    """Return the node of the VM's share-manager pod."""
    return str((world.longhorn.pod(vm.volumes[0]) or {"spec": {}})["spec"].get("nodeName"))


def test_a_share_manager_stops_up_to_thirty_seconds_after_its_last_ticket(quiet: World) -> None:
    """The ticket goes with the virt-launcher pod; the share-manager pod goes at the next resync."""
    vm = quiet.virt.vms["vm-00"]
    quiet.virt.stop(vm)
    until(quiet, lambda: not quiet.longhorn.volumes["disk-00"].tickets)
    took = until(quiet, lambda: quiet.longhorn.pod("disk-00") is None)
    assert took <= 36  # 30 s, and what the pod takes to end
    assert quiet.longhorn.volumes["disk-00"].state == "stopped"


def test_a_share_manager_pod_is_made_up_to_thirty_seconds_after_its_ticket(quiet: World) -> None:
    """A cold start: the virt-launcher pod has its node long before."""
    vm = quiet.virt.vms["vm-00"]
    quiet.virt.stop(vm)
    quiet.run(quiet.engine.now + 300)
    quiet.virt.start(vm)
    until(quiet, lambda: bool(quiet.longhorn.volumes["disk-00"].tickets))
    assert quiet.virt.node_of(vm)
    assert until(quiet, lambda: quiet.longhorn.pod("disk-00") is not None) <= 30.1


def test_a_live_share_manager_pod_stays_in_a_migration(quiet: World) -> None:
    """The VM moves, and its share-manager does not."""
    vm = quiet.virt.vms["vm-01"]
    before, node = home(quiet, vm), quiet.virt.node_of(vm)
    migration = quiet.migrations.create(vm, "user")
    until(quiet, lambda: migration is not None and not migration.unfinished)
    assert quiet.virt.node_of(vm) != node
    assert home(quiet, vm) == before


def test_an_owner_leaves_a_cordoned_node_while_the_pod_stays(quiet: World) -> None:
    """Within 6 to 24 s; and is back within 30 s of uncordon."""
    vm = quiet.virt.vms["vm-02"]
    node, volume = home(quiet, vm), quiet.longhorn.volumes["disk-02"]
    quiet.nodes.cordon(node, cordoned=True)
    assert 6 <= until(quiet, lambda: volume.owner != node) <= 24.1
    assert home(quiet, vm) == node
    quiet.nodes.cordon(node, cordoned=False)
    assert until(quiet, lambda: volume.owner == node) <= 30.1


def test_a_node_without_power_is_unready_after_40_s_and_loses_its_pods_after_340(quiet: World) -> None:
    """The share-managers fail over much earlier: in 6 to 7 s."""
    node, vms = busiest(quiet)
    volumes = [name for name, each in quiet.longhorn.volumes.items() if each.owner == node]
    quiet.nodes.die(node)
    if volumes:
        moved = until(quiet, lambda: all(quiet.longhorn.volumes[name].owner != node for name in volumes))
        assert 6 <= moved <= 7.5
    assert not vms[0].running
    assert until(quiet, lambda: not quiet.nodes.states[node].ready) <= 40.1
    deleted = until(quiet, lambda: any("deletionTimestamp" in pod["metadata"] for _, pod in quiet.nodes.pods_on(node)))
    assert 299 <= deleted <= 300.2
    until(quiet, lambda: all(vm.running for vm in vms))


def test_at_most_two_migrations_leave_a_node_and_five_run(quiet: World) -> None:
    """KubeVirt's defaults hold while a whole node is evacuated."""
    node, vms = busiest(quiet)
    quiet.nodes.cordon(node, cordoned=True)
    most = 0
    while not quiet.migrations.evacuate(node):
        quiet.run(quiet.engine.now + 0.5)
        most = max(most, len(quiet.migrations.running()))
    assert most == min(2, len(vms))


def test_five_finished_migrations_of_a_vm_stay(quiet: World) -> None:
    """The oldest goes first."""
    vm = quiet.virt.vms["vm-03"]
    for _ in range(7):
        migration = quiet.migrations.create(vm, "user")
        until(quiet, lambda migration=migration: migration is not None and not migration.unfinished)
    assert [each.name for each in vm.finished] == [f"user-{number}" for number in range(3, 8)]


def test_a_second_migration_of_a_vm_is_refused(quiet: World) -> None:
    """By virt-api, as long as the first is not finished."""
    vm = quiet.virt.vms["vm-03"]
    assert quiet.migrations.create(vm, "user") is not None
    assert quiet.migrations.create(vm, "user") is None


@pytest.mark.parametrize(("nodes", "share"), [(100, 1.0), (1000, 0.42), (5000, 0.10)])
def test_a_preference_is_met_as_often_as_the_preferred_node_is_in_the_sample(nodes: int, share: float) -> None:
    """Measured on kube-scheduler 1.36: 100 % at 100 nodes, 44 % at 1,000, 10 % at 5,000."""
    assert _to_find(nodes) / nodes == share


def test_among_few_nodes_a_preference_is_always_met() -> None:
    """The preferred node has twice the weight of resources, even if it is the fullest that still has room."""
    world = World(NONE, 1, QUIET)
    engine: Engine = world.engine
    scheduler: KubeScheduler = world.scheduler
    for index in range(8):
        world.api.put(POD, _pod(f"other-{index}", "node-02"))
        scheduler.state("node-02").add(f"vms/other-{index}", _requests())
    affinity = builders.node_affinity(preferred={"node-02": 100})
    chosen = {scheduler.choose({**_pod("new", ""), "spec": {**_pod("new", "")["spec"], "affinity": affinity}})}
    assert chosen == {"node-02"}
    assert scheduler.choose(_pod("free", "")) != "node-02"
    assert engine.now == 0


def test_a_cold_start_is_local_with_the_webhook() -> None:
    """The share-manager pod is steered to its VM, whatever the lag of the watch is."""
    world = World(OURS, 5, SHORT)
    world.virt.start(world.virt.vms["vm-00"])
    world.run(HOUR)
    assert world.account.hours[LOCAL] == pytest.approx(1.0, abs=0.02)
    pod = world.api.get(POD, f"{LONGHORN}/share-manager-disk-00")
    assert pod is not None
    assert world.api.get(Kind.SHARE_MANAGER, f"{LONGHORN}/disk-00") is not None


def _pod(name: str, node: str) -> Object:
    resources = {"requests": {"cpu": "100m", "memory": "4096Mi"}}
    pod = builders.virt_launcher_pod(namespace="vms", containers=[{"name": "compute", "resources": resources}])
    pod["metadata"] |= {"name": name, "labels": {"app": name}}
    pod["spec"] |= {"nodeName": node} if node else {}
    return {**pod, "status": {"phase": "Pending"}}


def _requests() -> Requests:

    return requests(_pod("any", ""))
