"""Names of objects as a user types them, and as kubectl accepts them."""

from __future__ import annotations

from typing import Any

import pytest
from click import UsageError

from webhook.explain.subjects import parse
from webhook.objects.kinds import NODE, POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, APIResource

SPELLING_ROWS: dict[str, APIResource[Any]] = {
    "vm": VIRTUAL_MACHINE,
    "vms": VIRTUAL_MACHINE,
    "virtualmachine": VIRTUAL_MACHINE,
    "virtualmachines": VIRTUAL_MACHINE,
    "VirtualMachine": VIRTUAL_MACHINE,
    "virtualmachines.kubevirt.io": VIRTUAL_MACHINE,
    "virtualmachines.v1.kubevirt.io": VIRTUAL_MACHINE,
    "vm.kubevirt.io": VIRTUAL_MACHINE,
    "vmi": VIRTUAL_MACHINE_INSTANCE,
    "vmis": VIRTUAL_MACHINE_INSTANCE,
    "virtualmachineinstance": VIRTUAL_MACHINE_INSTANCE,
    "virtualmachineinstances.kubevirt.io": VIRTUAL_MACHINE_INSTANCE,
    "po": POD,
    "pod": POD,
    "pods": POD,
    "Pod": POD,
}


@pytest.mark.parametrize(("spelling", "type_"), SPELLING_ROWS.items(), ids=SPELLING_ROWS)
def test_a_type_is_spelled_as_kubectl_takes_it(spelling: str, type_: APIResource[Any]) -> None:
    """TYPE/NAME and TYPE NAME: singular, plural and short, with or without the group, in upper and lower case."""
    for words in ([f"{spelling}/db-1.x"], [spelling, "db-1.x"]):
        (named,) = parse(words)
        assert (named.kind, named.name) == (type_, "db-1.x")
        assert str(named) == f"{spelling}/db-1.x"


def test_several_are_taken_in_their_order() -> None:
    """Several types with slashes, or one type with several names."""
    assert [(each.kind, each.name) for each in parse(["vm/b", "pod/a"])] == [(VIRTUAL_MACHINE, "b"), (POD, "a")]
    assert [str(each) for each in parse(["vm", "b", "a"])] == ["vm/b", "vm/a"]
    assert parse([]) == ()


def test_a_name_alone_is_that_of_a_vm() -> None:
    """As for `status` and `candidates`; also beside names with a type."""
    assert [(each.kind, each.name, str(each)) for each in parse(["db", "pod/a"])] == [
        (VIRTUAL_MACHINE, "db", "db"),
        (POD, "a", "pod/a"),
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["vm", "a/b"],
        ["vm", "vm/a"],
        ["vm/.."],
        ["pods.kubevirt.io/a"],
        ["volume/a"],
        ["pv/a"],
        ["/a"],
        ["vm/", "x"],
    ],
    ids=str,
)
def test_anything_else_is_refused(words: list[str]) -> None:
    """A type that does not exist, and a name with a slash is an error."""
    with pytest.raises(UsageError, match="expected vm/NAME, vmi/NAME or pod/NAME"):
        parse(words)


PATH_ROWS = {
    "a VM": (VIRTUAL_MACHINE, "/apis/kubevirt.io/v1/namespaces/n/virtualmachines/a", "virtualmachines.kubevirt.io"),
    "a pod": (POD, "/api/v1/namespaces/n/pods/a", "pods"),
}


@pytest.mark.parametrize(("type_", "path", "title"), PATH_ROWS.values(), ids=PATH_ROWS)
def test_a_type_knows_its_path(type_: APIResource[Any], path: str, title: str) -> None:
    """The core group has another path than all other groups."""
    assert (type_.path("namespaces/n", "a"), type_.title) == (path, title)


def test_what_is_in_no_namespace_has_none_in_its_path() -> None:
    """The path of a cluster-wide object has no empty part."""
    assert NODE.path("", "a") == "/api/v1/nodes/a"
