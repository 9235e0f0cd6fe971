"""status --plan: what would bring each VM together, as YAML for kubectl, and what is said where nothing would."""

from __future__ import annotations

from typing import Any, Final

import pytest
import yaml
from support.drivers.status_runs import KUBEVIRT, Ran, Status, instance, kubevirt, machine, pinned
from support.fakes.static_api import StaticApi
from support.objects import builders
from support.objects.fleets import disk, running_pod, served

PODS: Final = "/api/v1/namespaces/vms/pods"


def put(api: StaticApi, *objects: dict[str, Any]) -> None:
    """Have these objects too, or instead of those of their names."""
    with StaticApi(objects) as other:
        api.objects |= other.objects


def migrations(ran: Ran) -> list[Any]:
    """What kubectl would create."""
    return [document for document in yaml.safe_load_all(ran.out) if document]


def told(ran: Ran, vm: str) -> list[str]:
    """The comments on a VM, without their marks."""
    lines = ran.out.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(f"# vms/{vm} is "))
    rest = [line.removeprefix("#   ") for line in lines[start + 1 :]]
    return rest[: next((i for i, line in enumerate(rest) if lines[start + 1 + i][:4] != "#   "), len(rest))]


def test_a_vm_that_is_apart_is_offered_a_migration(status: Status, api: StaticApi) -> None:
    """To the share-manager's node, by the label that the node has; standard output is YAML and nothing else."""
    ran = status("web --plan")
    assert ran.code == 1
    assert migrations(ran) == [
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstanceMigration",
            "metadata": {"generateName": "web-together-", "namespace": "vms"},
            "spec": {"vmiName": "web", "addedNodeSelector": {"kubernetes.io/hostname": "host-node-b"}},
        }
    ]
    assert told(ran, "web") == [
        "with its next start: virtctl restart web -n vms",
        "without downtime: to node-b, by this live migration",
    ]
    assert (
        "# vms/web is apart, on node-a since 2026-01-02T04:00:00Z: claim page: pod share-manager-page is on " in ran.out
    )
    assert ran.out.startswith(f"# {api.origin} at ")
    assert ran.err == "1 apart, 0 stuck; 1 can be brought together by the live migrations above\n"


def test_nothing_is_written(status: Status, api: StaticApi) -> None:
    """A plan only reads; what it takes is read once for each VM, and a node once for all."""
    put(api, *disk("more"), *served("more", "node-b"), running_pod("more", "more"), instance("more"))
    assert len(migrations(status("--plan"))) == 2
    assert max(api.asked.count(path) for path in set(api.asked)) == 2  # the node: to be judged, and for its room
    assert len([path for path in api.asked if "spec.nodeName%3Dnode-b" in path]) == 1


def test_a_stuck_vm_needs_a_new_decision(status: Status) -> None:
    """No migration can move what does not run."""
    ran = status("mail --plan")
    assert (ran.code, migrations(ran)) == (1, [])
    assert told(ran, "mail") == ["a new pod is decided on by what is there then: virtctl restart mail -n vms"]
    assert ran.err == "0 apart, 1 stuck; 0 can be brought together by the live migrations above\n"


def test_with_nothing_to_do_nothing_is_printed(status: Status, api: StaticApi) -> None:
    """And nothing more is asked than a look takes."""
    ran = status("db cold --plan")
    assert (ran.code, ran.out, ran.err) == (0, "", "nothing to do: no VM is apart or stuck\n")
    assert not [path for path in api.asked if path.startswith(KUBEVIRT)]


def test_share_managers_on_several_nodes_are_not_for_one_migration(status: Status, api: StaticApi) -> None:
    """It would only change which of them is apart."""
    pod = running_pod("web", "page")
    pod["spec"]["volumes"].append(builders.claim_volume("second", "root"))
    put(api, pod)
    ran = status("web --plan")
    assert migrations(ran) == []
    assert told(ran, "web")[0] == (
        "its share-managers are on node-a and node-b: no one migration can bring it to all of them"
    )


def test_kubevirts_state_of_a_vm_is_not_for_a_migration_to_go_after(status: Status, api: StaticApi) -> None:
    """Its share-manager may be anywhere: the migration goes to the disk's."""
    state = "persistent-state-for-web-x7k2p"
    pod = running_pod("web", "page")
    pod["spec"]["volumes"].append(builders.claim_volume("vm-state", state))
    put(api, pod, *disk(state), *served(state, "node-a"))
    (migration,) = migrations(status("web --plan"))
    assert migration["spec"]["addedNodeSelector"] == {"kubernetes.io/hostname": "host-node-b"}


def test_our_own_old_pin_is_no_obstacle(status: Status, api: StaticApi) -> None:
    """A migration's target pod is rendered from the VM, and has none of what the webhook wrote."""
    put(api, pinned("web", "page", "node-a", to="node-a"))
    assert len(migrations(status("web --plan"))) == 1


def spec(**fields: Any) -> dict[str, Any]:
    """The pod of `web` with these fields of its spec."""
    pod = running_pod("web", "page")
    return {**pod, "spec": {**pod["spec"], **fields}}


def unlabelled() -> dict[str, Any]:
    """node-b without a hostname."""
    node = builders.node("node-b")
    del node["metadata"]["labels"]["kubernetes.io/hostname"]
    return node


def full(name: str, **requests: str) -> dict[str, Any]:
    """A pod on node-b that takes this much of it."""
    pod = running_pod(name, "none", "node-b")
    del pod["metadata"]["labels"]
    pod["spec"]["containers"][0]["resources"] = {"requests": requests}
    return pod


def test_a_node_that_is_full_is_no_place_to_go(status: Status, api: StaticApi) -> None:
    """What its pods have left is counted, and what the plan itself has given away."""
    for name in ("web", "more"):
        pod = running_pod(name, "page")
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "3"}}
        put(api, pod, instance(name))
    put(api, full("others", cpu="60"))
    ran = status("--plan")
    assert len(migrations(ran)) == 1
    assert told(ran, "web")[0].startswith(
        "not without downtime: node node-b has too little of cpu: 3000m is requested, 63000m of 64000m"
    )
    put(api, full("others", cpu="62"))
    assert migrations(status("--plan")) == []


def test_what_an_earlier_migration_asked_for_is_no_obstacle(status: Status, api: StaticApi) -> None:
    """Its target pod keeps the added selector, and the VM does not; one that is the VM's own stays."""
    selector = {"kubernetes.io/hostname": "host-node-a"}
    migrated = spec(nodeSelector=selector)
    migrated["metadata"]["labels"]["kubevirt.io/migrationJobUID"] = "an-earlier-one"
    put(api, migrated)
    assert [each["spec"]["vmiName"] for each in migrations(status("web --plan"))] == ["web"]
    put(api, {**instance("web"), "spec": {"nodeSelector": selector}})
    assert migrations(status("web --plan")) == []


OBSTACLES: Final = {
    "a cordon": (builders.node("node-b", cordoned=True), "node node-b is cordoned"),
    "no Longhorn": (
        builders.longhorn_node("node-b", ready="False"),
        "Longhorn is not ready on node node-b (nodes.longhorn.io is not Ready), so no volume can be attached there",
    ),
    "the VM's own selector": (
        spec(nodeSelector={"kubernetes.io/hostname": "host-node-a"}),
        "node node-b does not have the label kubernetes.io/hostname=host-node-a of the pod's nodeSelector",
    ),
    "no hostname": (unlabelled(), "node node-b has no label kubernetes.io/hostname"),
    "its disks": (
        instance("web", migratable="False"),
        "KubeVirt can't migrate it: DisksNotLiveMigratable: cannot migrate VMI: PVC disk is not shared",
    ),
    "an old KubeVirt": (kubevirt("v1.4.2"), "KubeVirt v1.4.2 has no addedNodeSelector, 1.5 is the first"),
    "a migration": (
        {**running_pod("web", "page", "node-c", at="2026-01-05T00:00:00Z", pod="bbbbb")},
        "it is being migrated now; look again when that is over",
    ),
}


@pytest.mark.parametrize(("changed", "why"), OBSTACLES.values(), ids=OBSTACLES)
def test_where_the_vm_does_not_fit_there_is_no_migration(
    changed: dict[str, Any], why: str, status: Status, api: StaticApi
) -> None:
    """The reason is told, and what the next start takes."""
    put(api, changed)
    ran = status("web --plan")
    assert migrations(ran) == []
    assert told(ran, "web") == [f"not without downtime: {why}", "with its next start: virtctl restart web -n vms"]


def test_what_only_the_scheduler_can_judge_is_said(status: Status, api: StaticApi) -> None:
    """A migration that it forbids fails, and the VM stays where it is: so it is offered."""
    spread = [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1, "labelSelector": {}}]
    put(api, spec(topologySpreadConstraints=spread))
    ran = status("web --plan")
    assert len(migrations(ran)) == 1
    assert told(ran, "web")[-1].startswith("not judged: the pod has a DoNotSchedule topology spread over zone; if ")


def test_a_new_kubevirt_is_named(status: Status, api: StaticApi) -> None:
    """Where it can be read; where not, that is said."""
    assert "Migrations need KubeVirt 1.5 or newer; its version was not read." in status("web --plan").out
    put(api, kubevirt("v1.9.0"))
    ran = status("web --plan")
    assert "Migrations need KubeVirt 1.5 or newer; this is v1.9.0." in ran.out
    assert len(migrations(ran)) == 1


def test_a_vm_that_nothing_owns_is_its_makers(status: Status, api: StaticApi) -> None:
    """Virtctl restarts VirtualMachines."""
    put(api, instance("web", owner=None))
    assert told(status("web --plan"), "web")[0] == (
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
def test_what_is_offered_is_what_kubevirt_takes(spec: Any, start: str, status: Status, api: StaticApi) -> None:
    """For the runStrategy of the VM: of one that is apart, and of one that is stuck."""
    put(api, machine("web", **spec), machine("mail", **spec))
    ran = status("--plan")
    assert told(ran, "web")[0].startswith(f"with its next start: {start.format('web')}")
    assert told(ran, "mail")[0].startswith(f"a new pod is decided on by what is there then: {start.format('mail')}")


def test_where_the_virtual_machine_may_not_be_read_both_ways_are_told(status: Status, api: StaticApi) -> None:
    """Each with what it is for."""
    api.refuse(f"{KUBEVIRT}/virtualmachines", 403, "not for you")
    both = f"virtctl restart web -n vms; if the VM's runStrategy is Once: {DELETE.format('web')}"
    assert told(status("web --plan"), "web")[0] == f"with its next start: {both}"


NOT_CACHED: Final = {
    "the instance": (
        f"{KUBEVIRT}/virtualmachineinstances",
        1,
        "whether it can be migrated was not read: 403 Forbidden: not for you",
    ),
    "the pod": (
        f"{PODS}/virt-launcher-web-aaaaa",
        0,
        "not without downtime: pod virt-launcher-web-aaaaa was not read: 403 Forbidden: not for you",
    ),
    "the node's pods": ("/api/v1/pods", 1, "whether there is room was not read: 403 Forbidden: not for you"),
    "the node": (
        "/api/v1/nodes",
        0,
        "not without downtime: node node-b: its Node could not be read (403 Forbidden: not for you)",
    ),
}


@pytest.mark.parametrize(("path", "count", "sentence"), NOT_CACHED.values(), ids=NOT_CACHED)
def test_what_may_not_be_read_is_said(path: str, count: int, sentence: str, status: Status, api: StaticApi) -> None:
    """Without the pod or the node there is no migration; KubeVirt itself refuses what it can't migrate."""
    api.refuse(path, 403, "not for you")
    ran = status("web --plan")
    assert len(migrations(ran)) == count
    assert sentence in told(ran, "web")


def test_names_can_break_no_yaml(status: Status, api: StaticApi) -> None:
    """Whatever KubeVirt says stays within its comment."""
    broken = instance("web", migratable="False")
    broken["status"]["conditions"][0]["message"] = "no\nkind: Secret\u2028kind: Secret"
    put(api, broken)
    ran = status("web --plan")
    assert migrations(ran) == []
    assert "no\\x0akind: Secret\\x2028kind: Secret" in ran.out
