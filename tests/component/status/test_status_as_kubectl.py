"""status takes the options that kubectl get has, and prints what kubectl would."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.drivers.command_line_programs import WEBHOOK
from support.drivers.serving import write_cluster
from support.drivers.status_runs import Object, Ran, Status, objects

ALL = ["far", "cold", "db", "mail", "new", "web"]


@pytest.fixture
def stored() -> list[Object]:
    """The VMs; two of them have the label `app`."""
    made = objects()
    for each in made:
        name = each["metadata"]["name"]
        if name.startswith(("virt-launcher-db-", "virt-launcher-web-")):
            each["metadata"]["labels"]["app"] = "shop"
    return made


@pytest.fixture
def described(stored: list[Object], tmp_path: Path) -> Path:
    """The same VMs in a file."""
    return write_cluster(tmp_path / "cluster.json", stored)


def from_file(file: Path, *words: str) -> Ran:
    """A run of status on a file, as a process."""
    done = WEBHOOK.run("status", "-f", str(file), *words)
    return Ran(done.returncode, done.stdout, done.stderr)


def names(ran: Ran) -> list[str]:
    """The first word of each line."""
    return [line.split()[0] for line in ran.out.splitlines()]


def test_labels_select_vms(status: Status, described: Path) -> None:
    """By the labels of their pods, in the cluster and in files; the summary counts only these."""
    for ran in (status("-l app=shop"), from_file(described, "-n", "vms", "-l", "app=shop")):
        assert (ran.code, names(ran)) == (1, ["VM", "db", "web"])
        assert ran.err == "2 VMs: 1 together, 1 apart\n"
    assert names(from_file(described, "-A", "-l", "!app", "-o", "name")) == [
        f"virtualmachineinstance.kubevirt.io/{name}" for name in ALL if name not in ("db", "web")
    ]


def test_a_table_has_no_head_if_the_user_wants_none(status: Status) -> None:
    """The lines are the same, and a table without rows has no line in both forms."""
    for words in ("", "-o wide"):
        assert names(status(f"--no-headers {words}")) == ["cold", "db", "mail", "new", "web"]
    assert status("--no-headers -n nobody").out == ""


def test_wide_adds_columns_and_changes_none(status: Status) -> None:
    """Each column of the table is in the wide table, with the same cells."""
    table, wide = (
        [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in status(words).out.splitlines()]
        for words in ("", "-o wide")
    )
    added = [index for index, name in enumerate(wide[0]) if name not in table[0]]
    assert [wide[0][index] for index in added] == ["SINCE-TIME", "POD", "ASKED", "DECIDED", "VOLUMES"]
    assert [[cell for index, cell in enumerate(row) if index not in added] for row in wide] == table


def test_names_are_for_other_programs(status: Status) -> None:
    """As `kubectl get -o name` prints names; status takes such a name, in every spelling that kubectl has."""
    ran = status("--apart -o name")
    assert ran.out == "virtualmachineinstance.kubevirt.io/mail\nvirtualmachineinstance.kubevirt.io/web\n"
    for typed in (ran.out.splitlines()[1], "vms/web", "vm.kubevirt.io/web", "VirtualMachine/web"):
        assert status(f"{typed} -o name").out == "virtualmachineinstance.kubevirt.io/web\n"


def test_a_name_in_all_namespaces(status: Status) -> None:
    """Where kubectl refuses that, status shows the VMs of this name, each with its namespace."""
    ran = status("-A far")
    assert (ran.code, names(ran)) == (0, ["NAMESPACE", "other"])
    ran = status("-A nobody")
    assert ran.code == 2
    assert (
        "nobody: no VM of this name runs and asks for co-scheduling in any namespace; try: kubevirt-coschedule explain"
        in ran.err
    )
