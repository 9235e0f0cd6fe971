"""`kubectl coschedule`: the real kubectl runs the program as its plugin, and completes the words behind it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from controlplane import build
from support.drivers.command_lines import EXAMPLES
from support.drivers.serving import ROOT
from support.drivers.status_runs import objects
from support.fakes.static_api import StaticApi
from support.waits import MAX_WAIT_SECONDS

Run = Callable[..., subprocess.CompletedProcess[str]]
PLUGIN: Final = ("kubectl-coschedule", "kubectl_complete-coschedule")


@pytest.fixture
def kubectl(tmp_path: Path) -> Run:
    """Runs kubectl. The scripts of the package are on its PATH, as an installer writes them."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    for name in PLUGIN:
        module, _, function = scripts[name].partition(":")
        script = tmp_path / name
        script.write_text(f"#!{sys.executable}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n")
        script.chmod(0o755)

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - a program that we have built
            [build.kubectl(), *words],
            cwd=ROOT,
            env={"PATH": f"{tmp_path}:{os.defpath}", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=MAX_WAIT_SECONDS,
        )

    return run


def test_the_plugin_is_the_program(kubectl: Run, tmp_path: Path) -> None:
    """It has the kubeconfig of kubectl, and kubectl passes the exit code on."""
    with StaticApi(objects()) as api:
        kubeconfig = api.kubeconfig(tmp_path / "config", namespace="vms")
        told = kubectl("coschedule", "status", "--no-headers", KUBECONFIG=str(kubeconfig))
    assert [line.split()[0] for line in told.stdout.splitlines()] == ["mail", "web", "new", "cold", "db"]
    summary = "5 VMs: 1 stuck, 1 apart, 1 pending, 1 free, 1 together; 25 % together of the 4 that can be compared"
    assert (told.returncode, told.stderr.splitlines()[0]) == (1, summary)


def test_the_help_says_what_the_user_types(kubectl: Run) -> None:
    """In the usage, in the examples, and where a mistake is reported."""
    told = kubectl("coschedule", "status", "--help")
    assert told.stdout.startswith("Usage: kubectl coschedule status [OPTIONS] [VM ...]")
    assert "\n    kubectl coschedule status -A -o wide\n" in told.stdout
    assert "kubevirt-coschedule" not in told.stdout
    told = kubectl("coschedule", "statsu")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.endswith("Error: No such command 'statsu'. Did you mean 'status'?\n")
    assert kubectl("coschedule", "--version").stdout.startswith("kubectl-coschedule, ")
    assert "kubectl-coschedule" in kubectl("plugin", "list").stdout


def test_kubectl_completes_the_words_of_the_plugin(kubectl: Run) -> None:
    """By a call of kubectl_complete-coschedule."""
    told = kubectl("__complete", "coschedule", "sta")
    assert told.stdout.splitlines() == ["status\tShow which VMs are with their share-manager.", ":4"]


def test_a_suggested_command_is_one_that_the_user_has(kubectl: Run) -> None:
    """It has the name that the user typed."""
    told = kubectl("coschedule", "status", "db01", "-n", "prod-vms", "--manifests", EXAMPLES, "-o", "wide")
    assert told.stdout.endswith(f": kubectl coschedule reunite db01 -n prod-vms -o yaml --now --manifests {EXAMPLES}\n")
    told = kubectl("coschedule", "explain", "vm/db01", "-n", "prod-vms", "--manifests", EXAMPLES)
    assert f": kubectl coschedule reunite db01 -n prod-vms -o yaml --now --manifests {EXAMPLES}\n" in told.stdout
