"""Names of objects as a user types them, and as kubectl accepts them."""

from __future__ import annotations

from typing import Any

import pytest
from click import UsageError

from webhook.explain.subjects import Named, parse
from webhook.objects.kinds import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, APIResource

SPELLINGS: dict[str, APIResource[Any]] = {
    **dict.fromkeys(("vm", "vms", "virtualmachine", "VirtualMachines", "vm.kubevirt.io"), VIRTUAL_MACHINE),
    "virtualmachines.v1.kubevirt.io": VIRTUAL_MACHINE,
    **dict.fromkeys(("vmi", "vmis", "virtualmachineinstances.kubevirt.io"), VIRTUAL_MACHINE_INSTANCE),
    **dict.fromkeys(("po", "pod", "Pods"), POD),
}


@pytest.mark.parametrize(("spelling", "kind"), SPELLINGS.items(), ids=SPELLINGS)
def test_a_type_is_spelled_as_kubectl_takes_it(spelling: str, kind: APIResource[Any]) -> None:
    """TYPE/NAME and TYPE NAME: singular, plural and short, with or without the group, in upper and lower case."""
    for words in ([f"{spelling}/db-1.x"], [spelling, "db-1.x"]):
        assert parse(words) == (Named(kind, "db-1.x", f"{spelling}/db-1.x"),)


def test_several_are_taken_in_their_order() -> None:
    """Several types with slashes, or one type with several names. A name alone is that of a VM."""
    vm, pod = Named(VIRTUAL_MACHINE, "b", "vm/b"), Named(POD, "a", "pod/a")
    assert parse(["vm/b", "pod/a"]) == (vm, pod)
    assert parse(["vm", "b", "a"]) == (vm, Named(VIRTUAL_MACHINE, "a", "vm/a"))
    assert parse(["b", "pod/a"]) == (Named(VIRTUAL_MACHINE, "b", "b"), pod)
    assert parse([]) == ()


WRONG = ("vm a/b", "vm vm/a", "vm/..", "pods.kubevirt.io/a", "volume/a", "/a", "vm/ x")


@pytest.mark.parametrize("words", WRONG)
def test_anything_else_is_refused(words: str) -> None:
    """A type that does not exist, and a name with a slash is an error."""
    with pytest.raises(UsageError, match="expected vm/NAME, vmi/NAME or pod/NAME"):
        parse(words.split())
