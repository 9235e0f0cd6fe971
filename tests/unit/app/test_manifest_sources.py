"""The rows that the page has of files: they never change."""

from __future__ import annotations

from support.fakes.views import LONGHORN_NAMESPACE, cluster
from support.objects import builders
from support.objects.fleets import disk, running_pod, served

from webhook.app.manifest_sources import vm_statuses_of
from webhook.core.observe.vm_status import State
from webhook.core.opt_in import Policy
from webhook.kube.vm_status import VMStatuses
from webhook.objects.vm_rows import rows_from_manifests

VM = [*disk("root"), *served("root", "node-b"), running_pod("db", "root")]


def filed(*more: dict[str, object]) -> VMStatuses:
    """The rows of one VM that is apart."""
    made = cluster(*VM, *more)
    return vm_statuses_of(made, rows_from_manifests(made, Policy(longhorn_namespace=LONGHORN_NAMESPACE)))


def test_the_rows_of_files_are_those_of_now() -> None:
    """They are as certain as the files."""
    statuses = filed()
    assert ([row.name for row in statuses.rows], statuses.counts[State.APART]) == (["db"], 1)
    assert (statuses.known, statuses.late, statuses.as_of) == (True, (), statuses.at)


def test_files_without_nodes_say_nothing_about_nodes() -> None:
    """A dump need not have them. With nodes, a node that is not among them does not exist."""
    assert filed().nodes is None
    assert filed(builders.node("node-a")).nodes == {"node-b": "node node-b does not exist"}
