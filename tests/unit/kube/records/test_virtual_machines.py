"""What a cache stores of VirtualMachines and VirtualMachineInstances."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.fakes.watching import RESOURCES
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

from webhook.core.reasons import ANNOTATION_CO_SCHEDULE
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


def test_an_annotation_in_the_wrong_place_is_kept() -> None:
    """That of the VM itself, unless its template has one."""
    described = virtual_machine("db")
    described["metadata"]["annotations"] = {ANNOTATION_CO_SCHEDULE: "true"}
    assert stored(Kind.VIRTUAL_MACHINE, described).metadata.annotation(ANNOTATION_CO_SCHEDULE) == "true"
    described["spec"]["template"]["metadata"] = {"annotations": {ANNOTATION_CO_SCHEDULE: "required"}}
    assert stored(Kind.VIRTUAL_MACHINE, described).metadata.annotation(ANNOTATION_CO_SCHEDULE) is None
