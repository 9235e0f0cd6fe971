"""The rows that the page has of files: all at once, and never a change."""

from __future__ import annotations

import asyncio

import pytest
from support.fakes.views import LONGHORN_NAMESPACE, cluster
from support.objects import builders
from support.objects.fleets import disk, running_pod, served

from webhook.app.manifest_sources import FiledVMStatuses
from webhook.core.observe.vm_status import State
from webhook.core.opt_in import Policy
from webhook.objects.vm_rows import rows_from_manifests

VM = [*disk("root"), *served("root", "node-b"), running_pod("db", "root")]


def filed(*more: dict[str, object]) -> FiledVMStatuses:
    """The rows of one VM that is apart."""
    made = cluster(*VM, *more)
    return FiledVMStatuses(made, rows_from_manifests(made, Policy(longhorn_namespace=LONGHORN_NAMESPACE)))


@pytest.mark.parametrize(("version", "rows", "whole"), [(1, 0, False), (-1, 1, True), (7, 1, True)])
def test_a_reader_gets_all_rows_once(version: int, rows: int, whole: bool) -> None:  # noqa: FBT001 - a row of a table
    """After version 1 there is nothing new; any other version is of another process."""
    changes = filed().changes(version)
    assert (changes.version, len(changes.rows), changes.gone, changes.whole) == (1, rows, (), whole)


async def test_nothing_comes_after_version_1() -> None:
    """A reader of an earlier version gets it at once; the others wait."""
    statuses = filed()
    assert (await statuses.after(0)).counts[State.APART] == 1
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(statuses.after(1), 0.01)


def test_files_without_nodes_say_nothing_about_nodes() -> None:
    """A dump need not have them. With nodes, a node that is not among them does not exist."""
    assert filed().snapshot.nodes is None
    assert filed(builders.node("node-a")).snapshot.nodes == {"node-b": "node node-b does not exist"}
