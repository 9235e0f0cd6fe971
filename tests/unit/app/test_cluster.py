"""The rows that the page has of files: they never change."""

from __future__ import annotations

from pathlib import Path

import msgspec
from support.drivers.serving import write_cluster
from support.fakes.views import LONGHORN_NAMESPACE, cluster
from support.objects.builders_kubevirt import virtual_machine_instance
from support.objects.fleets import disk, running_pod, served

from webhook.app.handler import described_cluster
from webhook.core.observe.vm_status import State
from webhook.core.opt_in import Policy
from webhook.kube.vm_status import VMStatuses
from webhook.objects.kinds import KINDS
from webhook.objects.objects import BundleList, ClusterBundle

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


def test_a_bundle_is_as_old_as_it_is(tmp_path: Path) -> None:
    """Its objects are of the time at which they were read."""
    lists = [BundleList(resource=each.title) for each in KINDS]
    bundle = ClusterBundle(
        cluster="c", at="2026-01-02T03:04:05Z", namespace="vms", longhorn_namespace=LONGHORN_NAMESPACE, lists=lists
    )
    statuses = filed(tmp_path, msgspec.to_builtins(bundle))
    assert (statuses.at, statuses.as_of) == ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z")


def test_a_vm_of_files_is_one_that_they_describe() -> None:
    """By its instance; where files have none, by its pod; and nobody knows of an instance that was not read."""
    by_pod, by_instance = cluster(*VM, vms=False), cluster(*VM, virtual_machine_instance("mail"))
    assert [by_pod.has_vm("vms", name) for name in ("db", "gone")] == [True, False]
    assert [by_instance.has_vm("vms", name) for name in ("mail", "gone")] == [True, False]
