"""The migration that `reunite` creates, its name, and what is read of one."""

import re

import pytest

from webhook.core.api.kubevirt import is_together
from webhook.core.api.migration import migration_object, next_name


@pytest.mark.parametrize(
    ("names", "name"),
    [
        pytest.param([], "vm-reunite-1", id="the first"),
        pytest.param(["vm-reunite-9", "vm-reunite-10"], "vm-reunite-11", id="numbers, not text"),
        pytest.param(["vm-reunite-3"], "vm-reunite-4", id="KubeVirt deleted the first two"),
        pytest.param(["vm-reunite-x", "vm-reunite-", "vm-together-7", "drain"], "vm-reunite-1", id="other names"),
    ],
)
def test_the_next_name_has_one_more_than_the_highest_number(names: list[str], name: str) -> None:
    """What another program called its migrations does not count."""
    assert next_name("vm", names) == name


@pytest.mark.parametrize("cut", ["x", ".", "-"])
def test_a_long_name_stays_a_valid_name_of_its_own(cut: str) -> None:
    """Two VMs whose names begin alike have different migrations, and the name fits into a label."""
    stem = "v" * 36 + cut * 2
    one, two = (next_name(stem + "x" * 20 + end, []) for end in "ab")
    assert one != two
    for each in (one, two):
        assert len(each) <= 63
        assert all(re.fullmatch("[a-z0-9]([a-z0-9-]*[a-z0-9])?", part) for part in each.split("."))


def test_a_vm_that_is_called_as_a_migration_has_other_names() -> None:
    """The migrations of VM `a` and of VM `a-reunite-1` never have one name."""
    assert next_name("a-reunite-1", []) == "a-reunite-1-reunite-1"
    assert next_name("a", ["a-reunite-1-reunite-1"]) == "a-reunite-1"


def test_the_api_server_cuts_no_generated_name() -> None:
    """It keeps 58 characters, and adds five: else a pod could not show that its migration is from a list."""
    made = migration_object("ns", "v" * 63, "host-b")["metadata"]["generateName"]
    assert len(made) <= 58
    assert is_together(f"{made}x2b5k")
