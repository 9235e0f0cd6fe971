"""status --plan: what brings each VM together again, as YAML for kubectl, and the sentences if nothing does."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.drivers.status_runs import (
    KUBEVIRT,
    Status,
    instance,
    kubevirt,
    machine,
    migrations,
    pinned,
    put,
    sentences,
)
from support.fakes.static_api import StaticApi
from support.objects import builders
from support.objects.fleets import disk, running_pod, served

PODS: Final = "/api/v1/namespaces/vms/pods"


def test_the_plan_has_a_migration_for_a_vm_that_is_apart(status: Status, api: StaticApi) -> None:
    """To the share-manager's node, by the label of the node. Standard output is YAML only."""
    ran = status("web --plan")
    assert ran.code == 1
    assert migrations(ran) == [
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstanceMigration",
            "metadata": {
                "generateName": "web-together-",
                "namespace": "vms",
                "labels": {"kubevirt-scheduler/reunite": "true"},
                "annotations": {"kubevirt.io/migrationUnschedulablePodTimeoutSeconds": "60"},
            },
            "spec": {"vmiName": "web", "addedNodeSelector": {"kubernetes.io/hostname": "host-node-b"}},
        }
    ]
    assert sentences(ran, "web") == [
        "with its next start: virtctl restart web -n vms",
        "without downtime: to node-b, by this live migration",
    ]
    assert "# vms/web is apart, on node-a since 2026-01-02T04:00:00Z: VmShareManagerLater: the share-manager" in ran.out
    assert ran.out.startswith(f"# {api.origin} at ")
    assert ran.err == "1 apart, 0 stuck; 1 can be brought together by the live migrations above\n"


def test_nothing_is_written(status: Status, api: StaticApi) -> None:
    """A plan only reads: each VM's objects once, and the nodes and all pods once for all VMs."""
    put(api, *disk("more"), *served("more", "node-b"), running_pod("more", "more"), instance("more"))
    assert len(migrations(status("--plan"))) == 2
    # The configuration of the webhook is read for its setting, and for the namespace of its pods.
    assert max(api.asked.count(path) for path in set(api.asked) if "configurations" not in path) == 1
    assert len([path for path in api.asked if path.startswith("/api/v1/pods?limit")]) == 1


def test_a_stuck_vm_needs_a_new_decision(status: Status) -> None:
    """A migration can't move a VM that does not run."""
    ran = status("mail --plan")
    assert (ran.code, migrations(ran)) == (1, [])
    assert sentences(ran, "mail") == ["the webhook decides again for a new pod: virtctl restart mail -n vms"]
    assert ran.err == "0 apart, 1 stuck; 0 can be brought together by the live migrations above\n"


def test_with_nothing_to_do_nothing_is_printed(status: Status, api: StaticApi) -> None:
    """The plan reads only what the rows need."""
    ran = status("db cold --plan")
    assert (ran.code, ran.out, ran.err) == (0, "", "nothing to do: no VM is apart or stuck\n")
    assert not [path for path in api.asked if path.startswith(KUBEVIRT) and "?" not in path]


def test_share_managers_on_several_nodes_are_not_for_one_migration(status: Status, api: StaticApi) -> None:
    """A migration would only change which share-manager is apart."""
    pod = running_pod("web", "page")
    pod["spec"]["volumes"].append(builders.claim_volume("second", "root"))
    put(api, pod)
    ran = status("web --plan")
    assert migrations(ran) == []
    assert sentences(ran, "web")[0] == (
        "its share-managers are on node-a and node-b: a migration brings the VM to only one of these nodes"
    )


def test_a_migration_does_not_follow_the_backend_storage(status: Status, api: StaticApi) -> None:
    """The share-manager of KubeVirt's state can be on any node: the migration goes to that of the disk."""
    state = "persistent-state-for-web-x7k2p"
    pod = running_pod("web", "page")
    pod["spec"]["volumes"].append(builders.claim_volume("vm-state", state))
    put(api, pod, *disk(state), *served(state, "node-a"))
    (migration,) = migrations(status("web --plan"))
    assert migration["spec"]["addedNodeSelector"] == {"kubernetes.io/hostname": "host-node-b"}


def test_an_earlier_pin_is_no_obstacle(status: Status, api: StaticApi) -> None:
    """KubeVirt makes a migration's target pod from the VM, so it has nothing that the webhook wrote."""
    put(api, pinned("web", "page", "node-a", to="node-a"))
    assert len(migrations(status("web --plan"))) == 1


def test_a_new_kubevirt_is_named(status: Status, api: StaticApi) -> None:
    """The plan has KubeVirt's version, or says that it could not be read."""
    assert "Migrations need KubeVirt 1.5 or newer; its version could not be read." in status("web --plan").out
    put(api, kubevirt("v1.9.0"))
    ran = status("web --plan")
    assert "Migrations need KubeVirt 1.5 or newer; this is v1.9.0." in ran.out
    assert len(migrations(ran)) == 1


def test_the_plan_says_how_long_a_node_selector_stays(status: Status) -> None:
    """Only a plan with a migration has the sentence about its node selector."""
    said = "A VM keeps the node selector of its migration until its next migration or start."
    assert said in status("web --plan").out
    assert said not in status("mail --plan").out


def test_a_vmi_without_an_owner_can_not_be_restarted(status: Status, api: StaticApi) -> None:
    """The command virtctl restarts VirtualMachines only."""
    put(api, instance("web", owner=None))
    assert sentences(status("web --plan"), "web")[0] == (
        "with its next start: no VirtualMachine owns web, so its creator must stop and start it"
    )


DELETE: Final = "kubectl delete virtualmachineinstance {} -n vms"


@pytest.mark.parametrize(
    ("spec", "start"),
    [
        pytest.param({"runStrategy": "Manual"}, "virtctl restart {} -n vms", id="Manual"),
        pytest.param({"runStrategy": "RerunOnFailure"}, "virtctl restart {} -n vms", id="RerunOnFailure"),
        pytest.param({"running": True}, "virtctl restart {} -n vms", id="running"),
        pytest.param({"runStrategy": "Once"}, f"{DELETE}; the VM's runStrategy is Once: KubeVirt refuses a", id="Once"),
        pytest.param(
            {"running": False}, "virtctl start {} -n vms, once KubeVirt has stopped it: the VM's", id="halted"
        ),
    ],
)
def test_the_command_fits_the_run_strategy(spec: Any, start: str, status: Status, api: StaticApi) -> None:
    """For a VM that is apart, and for a VM that is stuck."""
    put(api, machine("web", **spec), machine("mail", **spec))
    ran = status("--plan")
    assert sentences(ran, "web")[0].startswith(f"with its next start: {start.format('web')}")
    assert sentences(ran, "mail")[0].startswith(f"the webhook decides again for a new pod: {start.format('mail')}")


def test_without_the_virtual_machine_the_plan_has_both_commands(status: Status, api: StaticApi) -> None:
    """Each with the runStrategy that it is for."""
    api.refuse(f"{KUBEVIRT}/virtualmachines", 403, "not for you")
    both = f"virtctl restart web -n vms; if the VM's runStrategy is Once: {DELETE.format('web')}"
    assert sentences(status("web --plan"), "web")[0] == f"with its next start: {both}"


NO_ROOM: Final = "if the node has no room for the VM, the migration fails and the VM stays"
CSI_NODES: Final = "/apis/storage.k8s.io/v1/csinodes"
NOT_CACHED: Final = {
    "the instance": (
        f"{KUBEVIRT}/virtualmachineinstances",
        1,
        "the VM's condition LiveMigratable could not be read: 403 Forbidden: not for you",
    ),
    "the pod": (
        f"{PODS}/virt-launcher-web-aaaaa",
        0,
        "no live migration: pod virt-launcher-web-aaaaa could not be read: 403 Forbidden: not for you",
    ),
    "the pods": ("/api/v1/pods", 1, f"other pods are not counted (403 Forbidden: not for you); {NO_ROOM}"),
    "the CSINodes": (CSI_NODES, 1, f"other pods are not counted (403 Forbidden: not for you); {NO_ROOM}"),
    "the node": (
        "/api/v1/nodes",
        0,
        "no live migration: node node-b: its Node could not be read (403 Forbidden: not for you)",
    ),
}


@pytest.mark.parametrize(("path", "count", "sentence"), NOT_CACHED.values(), ids=NOT_CACHED)
def test_missing_permissions_are_named(path: str, count: int, sentence: str, status: Status, api: StaticApi) -> None:
    """Without the pod or the node there is no migration. KubeVirt itself refuses what it can't migrate."""
    api.refuse(path, 403, "not for you")
    ran = status("web --plan")
    assert len(migrations(ran)) == count
    assert sentence in sentences(ran, "web")


def test_names_can_break_no_yaml(status: Status, api: StaticApi) -> None:
    """All text of KubeVirt stays in its comment."""
    broken = instance("web", migratable="False")
    broken["status"]["conditions"][0]["message"] = "no\nkind: Secret\u2028kind: Secret"
    put(api, broken)
    ran = status("web --plan")
    assert migrations(ran) == []
    assert "no\\x0akind: Secret\\x2028kind: Secret" in ran.out
