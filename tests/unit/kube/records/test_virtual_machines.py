"""What a cache stores of VirtualMachines and VirtualMachineInstances."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.fakes.watching import RESOURCES
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

from webhook.core.observe.remedy import owner_of
from webhook.core.view import Kind
from webhook.kube.wire import Decoders


def stored(kind: Kind, described: dict[str, Any]) -> Any:
    """What is stored of an object."""
    resource = RESOURCES[kind]
    return resource.transform(Decoders(resource.wire).object(json.dumps(described).encode()))


@pytest.mark.parametrize("name", ["", "Node A", "n" * 254, "../x"])
def test_what_can_not_be_the_name_of_a_node_is_not_kept(name: str) -> None:
    """Who may write the status of an instance can write anything there."""
    assert stored(Kind.VIRTUAL_MACHINE_INSTANCE, virtual_machine_instance("db", node=name)).node is None


def test_nothing_else_of_a_vm_is_kept() -> None:
    """Cloud-init and whatever else the VM has is not decoded, whatever it is."""
    described = virtual_machine("db", ["disk"])
    described["spec"]["template"]["spec"]["volumes"].append(
        {"name": "init", "cloudInitNoCloud": {"userData": "secret"}}
    )
    described["spec"]["template"]["spec"] |= {"hostname": 5, "accessCredentials": "no list"}
    assert stored(Kind.VIRTUAL_MACHINE, described) == stored(Kind.VIRTUAL_MACHINE, virtual_machine("db", ["disk"]))


def test_what_owns_a_vm_is_kept() -> None:
    """A command on a VM of a VirtualMachinePool can be undone by the pool, and the page says so."""
    described = virtual_machine("db")
    owner = {"apiVersion": "pool.kubevirt.io/v1alpha1", "kind": "VirtualMachinePool", "name": "web", "uid": "p"}
    described["metadata"]["ownerReferences"] = [owner]
    assert owner_of(stored(Kind.VIRTUAL_MACHINE, described)) == "VirtualMachinePool web"


@pytest.mark.parametrize(("status", "why"), [("False", "DisksNotLiveMigratable: not shared"), ("True", ""), (None, "")])
def test_why_a_vm_can_not_be_migrated_is_kept(status: str | None, why: str) -> None:
    """The page advised a migration, and `status` said that KubeVirt can't do it."""
    described = virtual_machine_instance("db", node="node-a")
    told = {"type": "LiveMigratable", "status": status, "reason": "DisksNotLiveMigratable", "message": "not shared"}
    described["status"]["conditions"] = [{"type": "Ready", "status": "True"}, *([told] if status else [])]
    found = stored(Kind.VIRTUAL_MACHINE_INSTANCE, described).status
    assert (found.unmigratable, found.node_name, bool(found.conditions)) == (why, "node-a", bool(why))
