"""VMs that the label of their Namespace or the cluster's setting opts in, on a real control plane.

The pods have no annotation, so what the webhook knows of them it knows from the Namespace.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.rendering import OPT_IN_ALL
from support.control_plane.vm_starts import NODES, Start, Starting, decision, nodes, preferred
from support.drivers.serving import Serving
from support.objects import builders
from support.scenarios.admitting import admission_lines, created, until, until_watched

from webhook import cli
from webhook.core.api.kubevirt import LABEL_MIGRATION_JOB_UID
from webhook.core.reasons import LABEL_CO_SCHEDULE

VM: Final = Start("db01")
COLD: Final = Start("db02")
NODE: Final = NODES[3]
NAMESPACE: Final = builders.labeled_namespace(builders.NAMESPACE, None)
EVERY: Final = ("--opt-in-all", "required")


def label(installed: Installed, value: str | None) -> None:
    """Set the label of the VMs' Namespace; None takes it away."""
    installed.plane.api.patch(NAMESPACE, {"metadata": {"labels": {LABEL_CO_SCHEDULE: value}}})


@contextmanager
def started(installed: Installed, *flags: str, component: str | None = None) -> Iterator[tuple[Serving, Starting]]:
    """A server with these flags; the share-manager of one VM is on a node, that of the other one is stopped."""
    with ExitStack() as here:
        cluster, starting = (here.enter_context(each(installed.plane.api)) for each in (ClusterState, Starting))
        installed.enable(component=component)
        here.callback(installed.disable)
        here.callback(label, installed, None)
        server = here.enter_context(installed.serving(*flags))
        share_manager = builders.share_manager(VM.volume, state="running", ownerID=NODE)
        running = [share_manager, builders.share_manager_pod(VM.volume, nodeName=NODE)]
        cluster.become([*nodes(), *VM.shelf[:2], *running, *COLD.shelf])
        until_watched(server)
        installed.until_called()
        yield server, starting


def tried(installed: Installed, opt_in: str | None = None) -> str:
    """The decision for a pod of the VM that is not kept; empty where the webhook did not decide."""
    return created(installed.plane.api, VM.launcher("tried", opt_in=opt_in)).decision


def until_decided(installed: Installed, begin: str) -> None:
    """Wait until API server and webhook have seen a change of the label; an empty text waits for no decision."""
    until(lambda: tried(installed).startswith(begin) and bool(tried(installed)) is bool(begin), f"a decision {begin}")


@pytest.fixture
def rows(installed: Installed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """What `status` says: VM -> (state, asked, askedBy)."""

    def read(*words: str) -> dict[str, tuple[str, str, str]]:
        kubeconfig = installed.plane.kubeconfig(tmp_path / "kubeconfig", installed.plane.admin)
        cli.main(["status", "-n", builders.NAMESPACE, "-o", "json", "--kubeconfig", str(kubeconfig), *words])
        report = json.loads(capsys.readouterr().out)
        assert report["problems"] == []
        return {each["name"]: (each["state"], each["asked"], each["askedBy"]) for each in report["items"]}

    return read


def test_a_vm_of_a_namespace_without_the_label_is_nobodys_business(installed: Installed, rows: Any) -> None:
    """The API server does not even call the webhook, and `status` does not show the VM."""
    with started(installed) as (server, starting):
        before = len(admission_lines(server))
        pod = starting.vm(VM, opt_in=None)
        assert decision(pod) == ""
        assert starting.placed(pod)
        label(installed, "false")
        until(lambda: LABEL_CO_SCHEDULE in installed.plane.api.get(NAMESPACE)["metadata"]["labels"], "the label")
        assert decision(starting.vm(VM, "2", opt_in=None)) == ""
        # One call, for the pod with an annotation: the calls before it would have been logged before it.
        assert tried(installed, "true").startswith("required on ")
        until(lambda: len(admission_lines(server)) > before, "the line of that call")
        assert len(admission_lines(server)) == before + 1
        assert rows() == {}


def test_the_label_opts_in_and_its_removal_ends_that(installed: Installed, rows: Any) -> None:
    """The VM is pinned, the decision names the label, `status` agrees; the VM's annotation wins; then it is over."""
    with started(installed) as (server, starting):
        label(installed, "true")
        until_decided(installed, f"required on {NODE}: ")
        before = len(admission_lines(server))
        pod = starting.vm(VM, opt_in=None)
        assert decision(pod).endswith("; opted in by the Namespace's label")
        until(lambda: len(admission_lines(server)) > before, "the line of that call")
        assert "reads" not in admission_lines(server)[-1], "the Namespace and all else comes from memory"
        assert starting.placed(pod) == NODE
        until(lambda: rows() == {VM.vm: ("together", "true", "namespace")}, "a VM with its share-manager")
        assert tried(installed, "false") == ""
        assert tried(installed, "preferred").startswith(f"preferred on {NODE}: ")
        label(installed, "preferred")
        until_decided(installed, f"preferred on {NODE}: ")
        assert rows() == {VM.vm: ("together", "preferred", "namespace")}
        label(installed, None)
        until_decided(installed, "")
        assert decision(starting.vm(VM, "2", opt_in=None)) == ""
        assert rows() == {}


@pytest.mark.parametrize("component", [None, OPT_IN_ALL], ids=["the label", "the setting"])
def test_a_vm_with_an_annotation_of_its_own_is_sent_once(installed: Installed, component: str | None) -> None:
    """The record that the first entry writes does not lead to a call of the second one."""
    with started(installed, *(EVERY if component else ()), component=component) as (server, starting):
        if component is None:
            label(installed, "true")
            until_decided(installed, f"required on {NODE}: ")
        before = len(admission_lines(server))
        assert decision(starting.vm(VM, opt_in="true")).startswith(f"required on {NODE}: ")
        until(lambda: len(admission_lines(server)) > before, "the line of that call")
        # A call for another pod: a second one for the first pod would have been logged before it.
        assert tried(installed, "preferred").startswith(f"preferred on {NODE}: ")
        until(lambda: len(admission_lines(server)) > before + 1, "the line of the other call")
        assert len(admission_lines(server)) == before + 2


def test_a_share_manager_pod_follows_a_vm_that_the_label_opts_in(installed: Installed) -> None:
    """Also the target of an earlier migration, which carries nothing of the webhook."""
    with started(installed) as (_, starting):
        label(installed, "true")
        until_decided(installed, f"required on {NODE}: ")
        target = starting.vm(COLD, opt_in=None, labels={LABEL_MIGRATION_JOB_UID: "u"})
        assert decision(target) == ""
        node = starting.placed(target)
        starting.ticket(COLD, node)
        share_manager = starting.share_manager(COLD, dryRun="All")
        assert preferred(share_manager) == {node: 100}
        label(installed, None)
        until_decided(installed, "")
        assert preferred(starting.share_manager(COLD, dryRun="All")) == {}


def test_the_setting_opts_in_every_vm(installed: Installed, rows: Any) -> None:
    """With the component, except for the VMs and Namespaces that say false."""
    with started(installed, *EVERY, component=OPT_IN_ALL) as (_, starting):
        pod = starting.vm(VM, opt_in=None)
        assert decision(pod).startswith(f"required on {NODE}: ")
        assert decision(pod).endswith("; opted in by the cluster's setting")
        assert starting.placed(pod) == NODE
        until(lambda: rows() == {VM.vm: ("together", "true", "cluster")}, "a VM with its share-manager")
        assert tried(installed, "false") == ""
        label(installed, "false")
        until_decided(installed, "")
        assert rows() == {}
