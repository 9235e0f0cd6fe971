"""The rows that the page has of files: they never change."""

from __future__ import annotations

from pathlib import Path

from support.drivers.serving import write_cluster
from support.fakes.views import LONGHORN_NAMESPACE
from support.objects import builders
from support.objects.fleets import disk, running_pod, served

from webhook.app.cluster import described_cluster
from webhook.core.observe.vm_status import State
from webhook.core.opt_in import Policy
from webhook.kube.vm_status import VMStatuses

VM = [*disk("root"), *served("root", "node-b"), running_pod("db", "root")]


def filed(directory: Path, *more: dict[str, object]) -> VMStatuses:
    """The rows of one VM that is apart."""
    files = write_cluster(directory / "cluster.json", [*VM, *more])
    return described_cluster(files, LONGHORN_NAMESPACE, Policy()).vm_statuses()


def test_the_rows_of_files_are_those_of_now(tmp_path: Path) -> None:
    """They are as certain as the files."""
    statuses = filed(tmp_path)
    assert ([row.name for row in statuses.rows], statuses.counts[State.APART]) == (["db"], 1)
    assert (statuses.known, statuses.late, statuses.as_of) == (True, (), statuses.at)


def test_files_without_nodes_say_nothing_about_nodes(tmp_path: Path) -> None:
    """A dump need not have them. With nodes, a node that is not among them does not exist."""
    assert filed(tmp_path).nodes is None
    assert filed(tmp_path, builders.node("node-a")).nodes == {"node-b": "node node-b does not exist"}
