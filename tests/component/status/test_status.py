"""status against an API server: rows, formats, choices, exit codes, and missing permissions."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from support.drivers.status_runs import Ran, Status, instance, kubevirt, machine
from support.fakes.static_api import StaticApi, path_of
from support.objects import builders
from support.objects.fleets import EARLY, disk, running_pod, served

from webhook import cli

CLAIMS: Final = "/api/v1/namespaces/vms/persistentvolumeclaims"
VMS: Final = "/apis/kubevirt.io/v1/namespaces/vms/virtualmachines"
LONGHORN: Final = "/apis/longhorn.io/v1beta2/namespaces/longhorn-system"


def test_only_lists_are_asked_for(status: Status, api: StaticApi) -> None:
    """Nine kinds, by pages, and the webhook configuration; no pods of other namespaces."""
    status()
    lists = [path.partition("?")[0] for path in api.asked if path != "/version"]
    assert sorted(lists) == sorted(
        [
            CLAIMS,
            "/api/v1/namespaces/vms",
            "/api/v1/namespaces/vms/events",
            "/api/v1/namespaces/vms/pods",  # of VMs
            "/api/v1/namespaces/vms/pods",  # of others, which can use a VM's volume
            "/api/v1/namespaces/longhorn-system/pods",
            "/api/v1/pods",  # of the webhook, by their labels
            "/api/v1/nodes",
            "/api/v1/persistentvolumes",
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/kubevirt-coschedule",
            "/apis/kubevirt.io/v1/namespaces/vms/virtualmachineinstances",
            "/apis/kubevirt.io/v1/namespaces/vms/virtualmachines",
            f"{LONGHORN}/sharemanagers",
        ]
    )
    assert not [path for path in api.asked if "watch" in path]


def test_a_failed_list_is_tried_again(status: Status, api: StaticApi) -> None:
    """After three failures status gives up."""
    api.refuse("/api/v1/persistentvolumes", 500, "etcd")
    ran = status("db -o json")
    assert (ran.code, ran.states) == (2, {"db": "unknown"})
    assert len([path for path in api.asked if path.startswith("/api/v1/persistentvolumes")]) == 3


def test_colors_are_for_terminals(monkeypatch: pytest.MonkeyPatch, status: Status) -> None:
    """NO_COLOR turns them off."""
    assert "\x1b" not in status().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "   \x1b[31mapart   \x1b[0m   " in status().out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in status().out


def test_a_switch_is_true_or_false_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its flag takes no value."""
    monkeypatch.setenv("KUBEVIRT_COSCHEDULE_APART", "perhaps")
    assert cli.main(["status"]) == 2
    assert "'perhaps' is not a valid boolean." in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "status -n vms -o wide",
        "status -n vms -o json",
        "explain vm/mail -n vms",
        "candidates -n vms -o commands",
        "reunite web -n vms",
        "reunite web -n vms -o yaml --now",
        "reunite web -n vms -o json",
    ],
)
def test_a_command_of_kubectl_asks_the_cluster_that_was_asked(
    run: Callable[..., Ran], api: StaticApi, tmp_path: Path, words: str
) -> None:
    """What a user copies, or pipes to a shell, must not change the cluster of the current context."""
    silent = running_pod("mute", "mute")
    silent["metadata"]["annotations"] = {}
    bound = instance("web", migratable="False")
    bound["status"] |= {"phase": "Running"}
    own = [*disk("mute"), *served("mute", "node-b", EARLY), silent, instance("mute"), machine("mute")]
    for each in (*own, bound, kubevirt("v1.6.0")):
        api.objects[path_of(each)] = each
    kubeconfig = str(api.kubeconfig(tmp_path / "kubeconfig"))
    told = run(*words.split(), "--kubeconfig", kubeconfig)
    commands = re.findall(r"\b(?:kubectl|virtctl) (?!apply)\S+ \S+", told.out)
    assert commands, told
    assert {each.split(maxsplit=1)[1] for each in commands} == {f"--kubeconfig {kubeconfig}"}


@pytest.mark.parametrize("words", ["web -o json", "--all-namespaces -o json", "-o json"])
def test_a_vm_that_has_an_instance_and_no_pod_is_not_called_stopped(status: Status, api: StaticApi, words: str) -> None:
    """Nobody knows whether it runs: status counts it, names the cause, and ends with 2."""
    del api.objects["/api/v1/namespaces/vms/pods/virt-launcher-web-aaaaa"]
    api.objects[f"{VMS}/web"]["spec"] |= {"template": {"metadata": {"annotations": {builders.OPT_IN: "true"}}}}
    ran = status(words)
    web = next(item for item in ran.report["items"] if item["name"] == "web")
    assert (ran.code, web["state"], web["reason"]) == (2, "unknown", "VmPodNotFound")
    assert ran.report["summary"]["unknown"] == 1
    assert ran.report["missing"] == []


@pytest.mark.parametrize(
    ("path", "said"),
    {
        "/api/v1/nodes": "whether a VM can start on the node of its share-manager",
        "/api/v1/namespaces/vms/events": "what `reunite` last said of a VM",
    }.items(),
)
def test_what_a_remedy_does_not_know_is_named(status: Status, api: StaticApi, path: str, said: str) -> None:
    """States and counts do not depend on it, so the exit code stays. Without a VM in trouble there is no remedy."""
    before = status()
    api.refuse(path, 403, "not for you")
    after = status()
    assert (after.code, before.code) == (1, 1)
    said = f"{said} is not known: 403 Forbidden: not for you"
    assert said in after.err.splitlines()
    assert said not in status("-l app=none").err
