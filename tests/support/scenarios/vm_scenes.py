"""A cluster in which four VMs are as VMs are in production: what every view of the fleet should tell the same of.

As objects for a real API server: `cluster_state` writes their status, as controllers and kubelets would; the one VM
that is on no node is left to the real kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from support.control_plane.kube_api import Api
from support.drivers.status_runs import instance
from support.objects import builders
from support.objects.fleets import EARLY, LATER, disk, scheduled, served

Object = dict[str, Any]
NODES: Final = ("node-a", "node-b", "node-c")
_MORE_THAN_A_NODE_HAS: Final = "4096"


def scenes() -> list[Object]:
    """Nodes, and VMs in `vms`: together, apart after a migration, pinned and unschedulable, and started from cold."""
    return [
        *map(builders.node, NODES),
        *map(builders.longhorn_node, NODES),
        *together(),
        *moved(),
        *pinned(),
        *disk("cold"),
        builders.share_manager("cold", state="stopped", ownerID="node-b"),
        pod("cold", "cold", "node-c", EARLY),
    ]


def together() -> list[Object]:
    """VM `db`, on the node of its share-manager."""
    return [
        *disk("root"),
        *served("root", "node-a", EARLY),
        pod("db", "root", "node-a", LATER, decided=builders.recorded("required", "node-a")),
    ]


def moved() -> list[Object]:
    """VM `moved`, live-migrated away from its share-manager. Its source pod has finished."""
    source = pod("moved", "page", "node-a", EARLY, suffix="aaaaa")
    source["status"]["phase"] = "Succeeded"
    target = pod("moved", "page", "node-b", LATER, suffix="bbbbb")
    target["metadata"]["labels"] |= {"kubevirt.io/migrationJobUID": "705ab4f5-6393-11e8-b7cc-42010a800002"}
    return [*disk("page"), *served("page", "node-a", EARLY), source, target]


def pinned() -> list[Object]:
    """VM `pinned`, which requests more than the node of its share-manager has."""
    waiting = pod("pinned", "mail", None, EARLY, decided=builders.recorded("required", "node-a"))
    waiting["spec"] |= {
        "schedulerName": "default-scheduler",
        "affinity": builders.node_affinity(required=[builders.on_node("node-a")], preferred={"node-a": 100}),
    }
    waiting["spec"]["containers"][0]["resources"] = {"requests": {"cpu": _MORE_THAN_A_NODE_HAS}}
    return [*disk("mail"), *served("mail", "node-a", EARLY), waiting]


def pod(
    vm: str, claim: str, node: str | None, at: str, *, decided: Mapping[str, str] | None = None, suffix: str = "aaaaa"
) -> Object:
    """The pod of a VM, on its node since this time. With node None it waits for kube-scheduler."""
    made = builders.virt_launcher_pod(
        claims=[claim], namespace="vms", annotations=decided, **({"nodeName": node} if node else {})
    )
    del made["metadata"]["generateName"]
    made["metadata"]["name"] = f"virt-launcher-{vm}-{suffix}"
    made["metadata"]["ownerReferences"][0]["name"] = vm
    return {**made, "status": {"phase": "Running", "conditions": [scheduled(at)]}} if node else made


def reasons_of(api: Api, vm: str) -> set[str]:
    """The reasons of the Events on a VirtualMachineInstance. Those on the VMs of other tests live for an hour, too."""
    uid = api.get(instance(vm))["metadata"]["uid"]
    events = api.items("v1", "Event", "vms", fieldSelector=f"involvedObject.uid={uid}")
    return {each["reason"] for each in events}
