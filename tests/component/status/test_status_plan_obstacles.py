"""status --plan: what keeps a VM from being migrated to the node of its share-manager."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.drivers.status_runs import (
    Ran,
    Status,
    instance,
    kubevirt,
    migrations,
    put,
    sentences,
)
from support.fakes.static_api import StaticApi
from support.objects import builders
from support.objects.fleets import running_pod

PODS: Final = "/api/v1/namespaces/vms/pods"


def spec(**fields: Any) -> dict[str, Any]:
    """The pod of `web` with these fields of its spec."""
    pod = running_pod("web", "page")
    return {**pod, "spec": {**pod["spec"], **fields}}


def unlabeled() -> dict[str, Any]:
    """node-b without a hostname label."""
    node = builders.node("node-b")
    del node["metadata"]["labels"]["kubernetes.io/hostname"]
    return node


def full(name: str, **requests: str) -> dict[str, Any]:
    """A pod on node-b that requests these amounts."""
    pod = running_pod(name, "none", "node-b")
    del pod["metadata"]["labels"]
    pod["spec"]["containers"][0]["resources"] = {"requests": requests}
    return pod


def _assert_no_migration(ran: Ran, why: str, next_start: str) -> None:
    assert migrations(ran) == []
    assert sentences(ran, "web") == [f"no live migration: {why}", next_start]


def test_there_is_no_migration_to_a_full_node(status: Status, api: StaticApi) -> None:
    """The plan counts the pods of the node, and those of its own migrations."""
    for name in ("web", "more"):
        pod = running_pod(name, "page")
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "3"}}
        put(api, pod, instance(name))
    put(api, full("others", cpu="60"))
    ran = status("--plan")
    assert len(migrations(ran)) == 1
    said = sentences(ran, "web")[0]
    assert said.startswith("no live migration: ")
    assert "node node-b has too little of cpu: 3000m is requested, 63000m of 64000m is taken" in said
    put(api, full("others", cpu="62"))
    assert migrations(status("--plan")) == []


def test_the_selector_of_an_earlier_migration_is_no_obstacle(status: Status, api: StaticApi) -> None:
    """The earlier target pod has the added node selector, and the VM does not. The VM's own node selector counts."""
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
    "no hostname": (unlabeled(), "node node-b has no label kubernetes.io/hostname"),
    "its disks": (
        instance("web", migratable="False"),
        "KubeVirt can't migrate it: DisksNotLiveMigratable: cannot migrate VMI: PVC disk is not shared",
    ),
    "an old KubeVirt": (kubevirt("v1.4.2"), "KubeVirt v1.4.2 has no addedNodeSelector, 1.5 is the first"),
    "a migration": (
        {**running_pod("web", "page", "node-c", at="2026-01-05T00:00:00Z", pod="bbbbb")},
        "a migration of the VM runs now; make a new plan after it has ended",
    ),
}


@pytest.mark.parametrize(("changed", "why"), OBSTACLES.values(), ids=OBSTACLES)
def test_where_the_vm_does_not_fit_there_is_no_migration(
    changed: dict[str, Any], why: str, status: Status, api: StaticApi
) -> None:
    """The plan has the reason, and the command for the next start."""
    put(api, changed)
    _assert_no_migration(status("web --plan"), why, "with its next start: virtctl restart web -n vms")


LOST: Final = "node node-a is not Ready, so KubeVirt can neither migrate nor restart the VM"


def test_nothing_moves_a_vm_off_a_node_that_is_lost(status: Status, api: StaticApi) -> None:
    """No migration and no `virtctl restart`: KubeVirt takes the VM for running until its pod is gone."""
    put(api, builders.node("node-a", ready="Unknown"))
    ran = status("web --plan")
    assert (migrations(ran), sentences(ran, "web")) == ([], [f"nothing to apply: {LOST}"])
    assert (
        f"{LOST}. If the machine of node node-a is certainly off, free the VM: kubectl taint nodes node-a " in ran.out
    )


def test_nothing_moves_a_vm_whose_pod_is_being_deleted(status: Status, api: StaticApi) -> None:
    """As after a node's loss, where the pod stays in this state."""
    leaving = running_pod("web", "page")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-05T00:00:00Z"
    put(api, leaving)
    ran = status("web --plan")
    assert migrations(ran) == []
    assert sentences(ran, "web")[0].startswith("nothing to apply: pod virt-launcher-web-aaaaa is being deleted")
    assert "restart web" not in ran.out


EXCLUDED: Final = {
    "its own selector": (
        spec(nodeSelector={"kubernetes.io/hostname": "host-node-a"}),
        "node node-b does not have the label kubernetes.io/hostname=host-node-a of the pod's nodeSelector",
    ),
    "a taint": (
        builders.node("node-b", taints=["storage-only=true:NoSchedule"]),
        "node node-b has the taint storage-only=true:NoSchedule, which the pod does not tolerate",
    ),
}


@pytest.mark.parametrize(("changed", "why"), EXCLUDED.values(), ids=EXCLUDED)
def test_a_restart_is_not_advised_where_it_changes_nothing(
    changed: dict[str, Any], why: str, status: Status, api: StaticApi
) -> None:
    """The node excludes the VM, whatever runs there."""
    put(api, changed)
    _assert_no_migration(
        status("web --plan"), why, "a restart changes nothing: the webhook can only prefer a node that rejects the VM"
    )


APART: Final = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
        ]
    }
}
SPREAD: Final = [
    {
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "maxSkew": 1,
        "labelSelector": {"matchLabels": {"app": "db"}},
    }
]


def labelled(pod: dict[str, Any], app: str = "db") -> dict[str, Any]:
    """The pod with a label."""
    pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), "app": app}
    return pod


RULES: Final = {
    "its anti-affinity": (
        [spec(affinity=APART), labelled(full("other"))],
        "a pod that the pod's required anti-affinity excludes (app=db) is in the same kubernetes.io/hostname as node",
    ),
    "the anti-affinity of another pod": (
        [labelled(running_pod("web", "page")), {**full("other"), "spec": {**full("other")["spec"], "affinity": APART}}],
        "a pod in the same kubernetes.io/hostname as node node-b has a required anti-affinity that excludes this pod",
    ),
    "its topology spread": (
        [labelled(spec(topologySpreadConstraints=SPREAD)), labelled(full("one")), labelled(full("two"))],
        "topology spread",
    ),
}


@pytest.mark.parametrize(("changed", "why"), RULES.values(), ids=RULES)
def test_rules_between_pods_are_those_of_a_pin(
    changed: list[dict[str, Any]], why: str, status: Status, api: StaticApi
) -> None:
    """A plan offers no migration that `reunite` would not create, and that kube-scheduler would refuse."""
    put(api, *changed)
    ran = status("web --plan")
    assert migrations(ran) == []
    assert sentences(ran, "web")[0].startswith("no live migration: ")
    assert why in sentences(ran, "web")[0]


def test_a_pod_that_is_elsewhere_is_no_obstacle(status: Status, api: StaticApi) -> None:
    """The same rule, and the other pod is on node-c."""
    other = labelled(full("other"))
    other["spec"]["nodeName"] = "node-c"
    put(api, spec(affinity=APART), other)
    assert len(migrations(status("web --plan"))) == 1


def test_a_rule_that_only_kube_scheduler_evaluates_is_named(status: Status, api: StaticApi) -> None:
    """As for `reunite`, there is no migration whose place is not known."""
    put(api, spec(resourceClaims=[{"name": "gpu"}]))
    ran = status("web --plan")
    assert migrations(ran) == []
    assert sentences(ran, "web")[0].startswith("no live migration: only kube-scheduler can tell: the pod ")


def test_without_the_pods_the_rules_between_them_are_named(status: Status, api: StaticApi) -> None:
    """If a rule forbids the node, the migration fails and the VM stays. The plan therefore has the migration."""
    api.refuse("/api/v1/pods", 403, "not for you")
    put(api, spec(topologySpreadConstraints=SPREAD))
    ran = status("web --plan")
    assert len(migrations(ran)) == 1
    assert sentences(ran, "web")[-2] == (
        "not evaluated: the pod has a DoNotSchedule topology spread over kubernetes.io/hostname; if that forbids the "
        "node, the migration fails and the VM stays"
    )
    assert sentences(ran, "web")[-1].startswith("other pods are not counted (403 Forbidden: not for you); ")
