"""What a cache stores of VirtualMachines and VirtualMachineInstances."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from support.fakes.watching import RESOURCES
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

from webhook.core.api.virtual_machine import VirtualMachine, VirtualMachineInstance
from webhook.core.observe.misplaced import misplaced_in
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE
from webhook.core.view import Kind
from webhook.kube.wire import Decoders

_NAMES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=3)


def stored(kind: Kind, described: dict[str, Any]) -> Any:
    """What is stored of an object."""
    resource = RESOURCES[kind]
    return resource.transform(Decoders(resource.wire).object(json.dumps(described).encode()))


@given(_NAMES, _NAMES, _NAMES, st.integers(0, 9))
def test_a_vm_comes_out_as_core_reads_it(claims: list[str], hot: list[str], cdroms: list[str], failures: int) -> None:
    """Its names, its claims and its failed starts."""
    described = virtual_machine("db", claims, hotpluggable=hot, cdroms=cdroms, start_failures=failures)
    found = stored(Kind.VIRTUAL_MACHINE, described)
    asked = convert(described, VirtualMachine)
    assert (found.metadata.namespace, found.metadata.name) == ("vms", "db")
    assert (found.claims, found.start_failures) == (asked.claims, asked.start_failures)


@pytest.mark.parametrize("vm", ["", "other", None])
@pytest.mark.parametrize("node", [None, "node-a"])
@given(claims=_NAMES, hot=_NAMES, cdroms=_NAMES)
def test_an_instance_comes_out_as_core_reads_it(
    node: str | None, vm: str | None, claims: list[str], hot: list[str], cdroms: list[str]
) -> None:
    """Its names, its uid, its claims, its VM and its node."""
    described = virtual_machine_instance("db", claims, vm=vm, uid="u-1", node=node, hotpluggable=hot, cdroms=cdroms)
    kind = Kind.VIRTUAL_MACHINE_INSTANCE
    found, asked = stored(kind, described), convert(described, VirtualMachineInstance)
    assert (found.metadata.namespace, found.metadata.name, found.metadata.uid) == ("vms", "db", "u-1")
    assert (found.claims, found.virtual_machine) == (asked.claims, asked.virtual_machine)
    assert found.node == asked.node == node


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
    assert misplaced_in(stored(Kind.VIRTUAL_MACHINE, described))
    described["spec"]["template"]["metadata"] = {"annotations": {ANNOTATION_CO_SCHEDULE: "required"}}
    assert not misplaced_in(stored(Kind.VIRTUAL_MACHINE, described))
