"""Why a VM is apart, and what to do: the same words in status, in its plan, in its changes and in explain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
from support.drivers.status_runs import Object, Status, kubevirt, migrations, put, sentences
from support.fakes.static_api import StaticApi
from support.objects import builders
from support.objects.fleets import EARLY, LATER, running_pod, served

from webhook import cli

NO_ROOM: Final = "NoRoom: node node-b has too little of memory: 4Gi is requested, 62Gi of 64Gi is taken"
WHY: Final = (
    f"at the VM's start the webhook preferred node-b and did not require it, because {NO_ROOM}; kube-scheduler chose "
    "node node-a"
)
TO_DO: Final = "live-migrate the VM to node node-b, if it can run there"
COMMAND: Final = "kubevirt-coschedule status --plan web -n vms"


def cure(status: Status) -> str:
    """What to do, with a command that asks the same cluster."""
    return f"{TO_DO}: {COMMAND} --kubeconfig {status.kubeconfig}"


def web(decision: Mapping[str, str] | None, **labels: str) -> Object:
    """The pod of `web` on node-a, with this decision."""
    pod = running_pod("web", "page", at=LATER)
    pod["metadata"]["labels"] |= labels
    if decision:
        pod["metadata"]["annotations"] |= decision
    return pod


@pytest.fixture(autouse=True)
def _preferred(api: StaticApi) -> None:
    """`web` is apart, because node-b had no room at its start."""
    put(api, *served("page", "node-b", EARLY), web(builders.recorded("preferred", "node-b", because=NO_ROOM)))


def test_status_says_why_and_what_to_do(status: Status) -> None:
    """In the table after the state; in JSON as fields."""
    (line,) = (line for line in status().out.splitlines() if line.startswith("web "))
    assert line.endswith(f"   VmPreferred: {WHY}; to do: {cure(status)}")
    (item,) = status("web -o json").report["items"]
    assert (item["reason"], item["because"], item["cure"]) == ("VmPreferred", WHY, cure(status))


def test_the_plan_says_why_and_what_to_do(status: Status) -> None:
    """The command is not repeated: the plan is what it prints."""
    assert f"since {LATER}: VmPreferred: {WHY}; to do: {TO_DO}\n" in status("web --plan").out


@pytest.mark.parametrize("output", ["text", "json"])
def test_explain_says_why_and_what_to_do(output: str, status: Status, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the VM as it is now, beside the decision for its next start."""
    words = ["explain", "pod/virt-launcher-web-aaaaa", "--kubeconfig", str(status.kubeconfig), "-o", output]
    assert cli.main(words) == 0
    printed = capsys.readouterr().out
    if output == "text":
        assert f"\nVM now:\n  State:    apart\n  Since:    {LATER}\n  Because:  VmPreferred: {WHY}\n" in printed
        assert f"  To do:    {cure(status)}\n" in printed
    else:
        for told in (WHY, cure(status), "VmPreferred"):
            assert f'"{told}"' in printed


def test_a_vm_that_is_not_apart_has_nothing_to_do(status: Status) -> None:
    """Its reason shows where the share-manager is."""
    (item,) = status("db -o json").report["items"]
    assert (item["state"], item["reason"], item["cure"]) == ("together", "ShareManagerPod", "")


def test_kubevirts_own_rule_on_a_migration_target_is_no_warning(status: Status, api: StaticApi) -> None:
    """KubeVirt keeps each target off the VM's node by a required anti-affinity; a user's own still counts."""
    rule = {
        "labelSelector": {"matchLabels": {"kubevirt.io/created-by": builders.OWNER_UID}},
        "topologyKey": "kubernetes.io/hostname",
    }
    target = web(None, **{"kubevirt.io/migrationJobUID": "3f"})
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    target["spec"]["affinity"] = {"podAntiAffinity": {required: [rule]}}
    put(api, target, kubevirt("v1.6.0"))
    ran = status("web --plan")
    assert len(migrations(ran)) == 1
    assert sentences(ran, "web") == [
        "with its next start: virtctl restart web -n vms",
        "without downtime: to node-b, by this live migration",
    ]
    users = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    target["spec"]["affinity"]["podAntiAffinity"][required].append(users)
    other = running_pod("other", "none", "node-b")
    other["metadata"]["labels"] = {"app": "db"}
    put(api, target, other)
    assert sentences(status("web --plan"), "web")[0].startswith(
        "no live migration: a pod that the pod's required anti-affinity excludes (app=db) is in the same "
    )
