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


def test_files_can_describe_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same rows, without an API server and without its client."""
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(objects()))
    assert cli.main(["status", "-n", "vms", "--manifests", str(file)]) == 1
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["mail", "web", "new", "cold", "db"]
    states = "1 stuck, 1 apart, 1 pending, 1 free, 1 together"
    assert err.splitlines()[0] == f"5 VMs: {states}; 25 % together of the 4 that can be compared"
    script = (
        "import sys; from webhook import cli; cli.main(sys.argv[1:]); sys.exit('kubernetes_asyncio' in sys.modules)"
    )
    command = [sys.executable, "-c", script, "status", "-A", "--manifests", str(file)]
    ended = subprocess.run(command, check=False, env=dict(os.environ), timeout=MAX_WAIT_SECONDS, capture_output=True)  # noqa: S603 - this Python
    assert ended.returncode == 0, ended.stderr


def test_a_switch_is_true_or_false_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its flag takes no value."""
    monkeypatch.setenv("KUBEVIRT_COSCHEDULE_APART", "perhaps")
    assert cli.main(["status"]) == 2
    assert "'perhaps' is not a valid boolean." in capsys.readouterr().err
