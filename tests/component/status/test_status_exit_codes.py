"""What the exit code of status says of named VMs, and what it refuses to judge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from support.drivers.command_lines import EXAMPLES
from support.drivers.serving import write_cluster
from support.drivers.status_runs import Ran
from support.objects.fleets import disk, running_pod, served

NAMED: Final = {"web01": 0, "cold01": 1, "win01": 1, "db01": 1, "erp01": 1, "vm/web01 cold01": 1}


@pytest.mark.parametrize(("names", "code"), NAMED.items(), ids=NAMED)
def test_status_of_named_vms_ends_with_0_only_if_each_is_together(
    run: Callable[..., Ran], names: str, code: int
) -> None:
    """`status VM && echo together` said it of a VM that is free."""
    assert run("status", *names.split(), "-n", "prod-vms", "--manifests", EXAMPLES).code == code


@pytest.mark.parametrize("command", ["status", "status web01 -n prod-vms", "candidates"])
def test_a_namespace_of_longhorn_without_a_share_manager_is_refused(run: Callable[..., Ran], command: str) -> None:
    """Of a VM that is apart `status` said together, with a misspelled namespace."""
    told = run(
        *command.split(),
        "-A" if "-n" not in command else "--output=wide",
        "--longhorn-namespace",
        "longhorn",
        "--manifests",
        EXAMPLES,
    )
    assert (told.code, told.out) == (2, "")
    assert told.err == (
        "Error: namespace longhorn has no ShareManager at all; expected Longhorn's own namespace: --longhorn-namespace "
        "longhorn-system\n"
    )


def test_objects_of_longhorn_of_another_version_are_mentioned(run: Callable[..., Ran], tmp_path: Path) -> None:
    """They were ignored without a word."""
    objects = [running_pod("db", "root", "node-a"), *disk("root"), *served("root", "node-a")]
    for each in objects:
        if each["apiVersion"] == "longhorn.io/v1beta2":
            each["apiVersion"] = "longhorn.io/v1beta1"
    file = write_cluster(tmp_path / "cluster.json", objects)
    told = run("status", "-A", "--manifests", str(file))
    assert (told.code, told.out) == (2, "")
    assert told.err.endswith(
        "\nobjects of Longhorn that are not read: 1 longhorn.io/v1beta1 ShareManager; expected "
        "longhorn.io/v1beta2, which Longhorn has since 1.3\n"
    )
