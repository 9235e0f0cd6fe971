"""status against an API server: rows, formats, choices, exit codes, and missing permissions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml
from support.drivers.status_runs import Status, objects
from support.fakes.static_api import StaticApi
from support.waits import MAX_WAIT_SECONDS

from webhook import cli

CLAIMS: Final = "/api/v1/namespaces/vms/persistentvolumeclaims"
LONGHORN: Final = "/apis/longhorn.io/v1beta2/namespaces/longhorn-system"


def test_each_vm_has_a_line(status: Status) -> None:
    """VM, node, share-managers, state, since and why. Sentences about the rows go to standard error."""
    ran = status("-o wide")
    head, *lines = (line.split("   ") for line in ran.out.splitlines())
    cells = [[cell.strip() for cell in line if cell] for line in lines]
    assert [cell.strip() for cell in head if cell] == [
        *("VM", "NODE", "SHARE-MANAGERS", "STATE", "SINCE", "SINCE-TIME", "POD", "ASKED", "DECIDED", "VOLUMES", "WHY")
    ]
    assert [(row[0], row[1], row[2], row[3]) for row in cells] == [
        ("cold", "node-a", "cold: -", "free"),
        ("db", "node-a", "root: node-a", "together"),
        ("mail", "-", "mail: node-b", "stuck"),
        ("new", "-", "root: node-a", "pending"),
        ("web", "node-a", "page: node-b", "apart"),
    ]
    assert cells[2][5:] == [
        "2026-01-02T04:00:00Z",
        "virt-launcher-mail-aaaaa",
        "true",
        "required",
        "mail (running)",
        (
            "VmStuck: pod virt-launcher-mail-aaaaa may run only on the nodes that its affinity names, "
            "and fits none: 0/3 nodes are available: 3 Insufficient memory.; to do: restart the VM, because the "
            "webhook decides again for a new pod: kubevirt-coschedule status --plan mail -n vms "
            f"--kubeconfig {status.kubeconfig}"
        ),
    ]
    assert ran.err == "5 VMs: 1 together, 1 apart, 1 stuck, 1 pending, 1 free\n"


def test_a_table_gives_a_reason_unless_a_vm_is_together(status: Status) -> None:
    """It also shows for how long; columns are aligned."""
    lines = status().out.splitlines()
    assert lines[0].split() == ["VM", "NODE", "SHARE-MANAGERS", "STATE", "SINCE", "WHY"]
    together = next(line for line in lines if line.startswith("db "))
    assert together.endswith("   -")
    assert {line.index("node-a") for line in lines if "node-a" in line[:14]} == {lines[0].index("NODE")}


CURE: Final = "live-migrate the VM to node node-b, if it can run there: kubevirt-coschedule status --plan web -n vms"
CHOICES: Final = {
    "a namespace's": ("", 1, ["cold", "db", "mail", "new", "web"]),
    "another namespace's": ("-n other", 0, ["far"]),
    "all": ("-A", 1, ["far", "cold", "db", "mail", "new", "web"]),
    "an empty namespace's": ("-n nobody", 0, []),
    "in trouble": ("--apart", 1, ["mail", "web"]),
    "by name": ("db cold", 0, ["cold", "db"]),
    "as explain names them": ("vm/db vmi/web", 1, ["db", "web"]),
    "by name, in trouble": ("db web --apart", 1, ["web"]),
    "none in trouble": ("db --apart", 0, []),
}


@pytest.mark.parametrize(("words", "code", "names"), CHOICES.values(), ids=CHOICES)
def test_rows_are_chosen(words: str, code: int, names: list[str], status: Status) -> None:
    """By namespace, by name and by state. The exit code is for all chosen rows, shown or not."""
    ran = status(f"{words} -o json")
    assert (ran.code, [item["name"] for item in ran.report["items"]]) == (code, names)


def test_the_summary_is_of_all_that_were_chosen(status: Status) -> None:
    """It includes rows that --apart does not show. Without rows it says so, and prints no empty table."""
    assert status("db web --apart").err == "2 VMs: 1 together, 1 apart\n"
    told = "no running VM asks for co-scheduling in namespace nobody; to see VMs of other namespaces: --all-namespaces"
    assert (status("-n nobody").out, status("-n nobody").err) == ("", f"{told}\n")


def test_a_name_that_is_not_there_is_an_error(status: Status) -> None:
    """Whatever the other rows are; the message says how to find the reason."""
    ran = status("nope web")
    assert ran.code == 2
    assert "web" in ran.out
    assert ran.err.splitlines()[1] == (
        "nope: no VM of this name runs and asks for co-scheduling in namespace vms; try: kubevirt-coschedule explain "
        f"vm/nope -n vms --kubeconfig {status.kubeconfig}"
    )


def test_json_and_yaml_say_the_same(status: Status, api: StaticApi) -> None:
    """All fields of a row, for programs."""
    found, same = status("web -o json").report, yaml.safe_load(status("web -o yaml").out)
    assert {**found, "at": ""} == {**same, "at": ""}
    assert (found["cluster"], found["problems"], found["missing"]) == (api.origin, [], [])
    assert found["summary"] == {"together": 0, "apart": 1, "stuck": 0, "pending": 0, "free": 0, "unknown": 0}
    (item,) = found["items"]
    assert item.pop("volumes") == [
        {
            "claim": "page",
            "volume": "page",
            "node": "node-b",
            "shareManager": "running",
            "together": False,
            "since": "2026-01-02T04:00:00Z",
            "reason": "ShareManagerPod",
            "because": "claim page: pod share-manager-page is on node node-b",
        }
    ]
    assert item == {
        "metadata": {"namespace": "vms", "name": "web"},
        "namespace": "vms",
        "name": "web",
        "state": "apart",
        "since": "2026-01-02T04:00:00Z",
        "node": "node-a",
        "onlyNode": None,
        "pod": "virt-launcher-web-aaaaa",
        "asked": "true",
        "askedBy": "vm",
        "mode": "required",
        "decided": "nothing",
        "pinned": False,
        "migrating": False,
        "reason": "VmShareManagerLater",
        "because": (
            "the share-manager of claim page took node node-b at 2026-01-02T04:00:00Z, after the VM had taken node "
            "node-a at 2026-01-02T03:04:05Z; the API server did not call the webhook for the share-manager's pod, or "
            "got no answer"
        ),
        "cure": f"{CURE} --kubeconfig {status.kubeconfig}",
        "reunite": "",
    }


def test_only_lists_are_asked_for(status: Status, api: StaticApi) -> None:
    """Eight kinds, by pages, and the webhook configuration; no nodes, and of pods only those of VMs."""
    status()
    lists = [path.partition("?")[0] for path in api.asked if path != "/version"]
    assert sorted(lists) == sorted(
        [
            CLAIMS,
            "/api/v1/namespaces/vms",
            "/api/v1/namespaces/vms/events",
            "/api/v1/namespaces/vms/pods",
            "/api/v1/namespaces/longhorn-system/pods",
            "/api/v1/persistentvolumes",
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/kubevirt-coschedule",
            "/apis/kubevirt.io/v1/namespaces/vms/virtualmachineinstances",
            "/apis/kubevirt.io/v1/namespaces/vms/virtualmachines",
            f"{LONGHORN}/sharemanagers",
        ]
    )
    assert not [path for path in api.asked if "watch" in path]


DENIED: Final = {
    "claims": (CLAIMS, {"unknown"}, 2),
    "volumes": ("/api/v1/persistentvolumes", {"unknown"}, 2),
    "ShareManagers": (f"{LONGHORN}/sharemanagers", {"together", "apart", "unknown"}, 1),
    "share-manager pods": ("/api/v1/namespaces/longhorn-system/pods", {"free", "unknown"}, 2),
}


@pytest.mark.parametrize(("path", "states", "code"), DENIED.values(), ids=DENIED)
def test_missing_permissions_are_named(path: str, states: set[str], code: int, status: Status, api: StaticApi) -> None:
    """Rows that need nothing of it are complete; the others are unknown, and the exit code is not 0."""
    api.refuse(path, 403, 'x is forbidden: User "alice" cannot list resource "x"')
    ran = status("db web cold -o json")
    assert (ran.code, set(ran.states.values())) == (code, states)
    (problem,) = ran.report["problems"]
    assert 'forbidden: 403 Forbidden: x is forbidden: User \\"alice\\"' in problem.replace('"', '\\"')
    assert f"not everything could be read: {problem}\n" in ran.err


def test_without_the_pods_there_are_no_rows(status: Status, api: StaticApi) -> None:
    """The error has the missing permission in the API server's words."""
    api.refuse("/api/v1/namespaces/vms/pods", 403, 'pods is forbidden: User "alice" cannot list resource "pods"')
    ran = status()
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {api.origin}: virt-launcher pods: forbidden: 403 Forbidden: pods is forbidden: ")


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


def test_files_can_describe_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same rows, without an API server and without its client."""
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(objects()))
    assert cli.main(["status", "-n", "vms", "--manifests", str(file)]) == 1
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["cold", "db", "mail", "new", "web"]
    assert err.splitlines()[-1] == "5 VMs: 1 together, 1 apart, 1 stuck, 1 pending, 1 free"
    script = (
        "import sys; from webhook import cli; cli.main(sys.argv[1:]); sys.exit('kubernetes_asyncio' in sys.modules)"
    )
    command = [sys.executable, "-c", script, "status", "-A", "--manifests", str(file)]
    ended = subprocess.run(command, check=False, env=dict(os.environ), timeout=MAX_WAIT_SECONDS, capture_output=True)  # noqa: S603 - this Python
    assert ended.returncode == 0, ended.stderr


CONTRADICTIONS: Final = {
    "-A -n vms": "got --all-namespaces and --namespace: expected one of the two",
    "db -l app=shop": "got --selector and names of VMs: expected one of the two",
    "--plan -o json": "got --plan and --output: expected one of the two",
    "--manifests x --context y": "got --context y and --manifests x: expected a live cluster or one in files, not both",
}


@pytest.mark.parametrize("words", CONTRADICTIONS)
def test_contradicting_options_are_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the cluster is read."""
    assert cli.main(["status", *words.split()]) == 2
    assert capsys.readouterr().err.splitlines()[0] == f"error: {CONTRADICTIONS[words]}"


def test_a_switch_is_true_or_false_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its flag takes no value."""
    monkeypatch.setenv("KUBEVIRT_COSCHEDULE_APART", "yes")
    assert cli.main(["status"]) == 2
    assert capsys.readouterr().err.startswith("error: KUBEVIRT_COSCHEDULE_APART: got 'yes', expected true or false\n")
