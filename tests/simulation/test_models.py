"""Each model against the facts that it follows: times and limits of the upstream programs, as they were measured."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from simulation.engine import HOUR
from simulation.vm import VM
from simulation.world import World


@pytest.fixture
def quiet() -> World:
    """VMs that run without the webhook, and nobody who does anything."""
    world = World(3, webhook=False)
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


def test_a_share_manager_pod_comes_and_goes_up_to_thirty_seconds_after_its_ticket(quiet: World) -> None:
    """At the next resync. At a cold start the virt-launcher pod has its node long before."""
    vm, volume = quiet.virt.vms["vm-00"], quiet.longhorn.volumes["disk-00"]
    quiet.virt.stop(vm)
    until(quiet, lambda: not volume.tickets)
    assert until(quiet, lambda: quiet.longhorn.pod("disk-00") is None) <= 36  # with what the pod takes to end
    assert volume.state == "stopped"
    quiet.virt.start(vm)
    until(quiet, lambda: bool(volume.tickets))
    assert quiet.virt.node_of(vm)
    assert until(quiet, lambda: quiet.longhorn.pod("disk-00") is not None) <= 30.1


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
    volumes = [each for each in quiet.longhorn.volumes.values() if each.owner == node]
    quiet.nodes.die(node)
    assert 6 <= until(quiet, lambda: all(each.owner != node for each in volumes)) <= 7.5
    assert not vms[0].running
    assert until(quiet, lambda: not quiet.nodes.states[node].ready) <= 40.1
    deleted = until(quiet, lambda: any("deletionTimestamp" in pod["metadata"] for _, pod in quiet.nodes.pods_on(node)))
    assert 299 <= deleted <= 300.2


def test_at_most_two_migrations_leave_a_node(quiet: World) -> None:
    """KubeVirt's default holds while a whole node is evacuated. The share-managers stay where they are."""
    node, vms = busiest(quiet)
    homes = {vm.name: home(quiet, vm) for vm in vms}
    quiet.nodes.cordon(node, cordoned=True)
    most = 0
    while not quiet.migrations.evacuate(node):
        quiet.run(quiet.engine.now + 0.5)
        most = max(most, len(quiet.migrations.running()))
    assert most == 2
    assert homes == {vm.name: home(quiet, vm) for vm in vms}


def test_one_migration_of_a_vm_runs_and_five_finished_ones_stay(quiet: World) -> None:
    """virt-api refuses a second one as long as the first is not finished. Of finished ones the oldest goes first."""
    vm, made = quiet.virt.vms["vm-03"], []
    for _ in range(7):
        migration = quiet.migrations.create(vm, "user")
        assert quiet.migrations.create(vm, "user") is None
        until(quiet, lambda: vm.migration is None)
        made.append(migration)
    assert vm.finished == made[2:]


def test_a_cold_start_is_local_with_the_webhook() -> None:
    """The share-manager pod is steered to its VM, whatever the lag of the watch is."""
    world = World(5)
    world.virt.start(world.virt.vms["vm-00"])
    world.run(HOUR)
    assert world.account.local == world.account.ran == pytest.approx(HOUR, abs=72)
