"""bundle against an API server: the file that it writes, and what it says when it can't."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from support.drivers.command_lines import WEBHOOK
from support.drivers.status_runs import Object, Ran, objects
from support.fakes.static_api import StaticApi

pytestmark = pytest.mark.slow

PODS: Final = "/api/v1/pods"


@pytest.fixture
def stored() -> list[Object]:
    """The VMs behind the API server."""
    return objects()


def test_a_file_is_replaced_when_the_new_one_is_complete(api: StaticApi, tmp_path: Path) -> None:
    """Only its owner may read it. The sentence says what is in it, and nothing is left beside it."""
    kubeconfig, file = api.kubeconfig(tmp_path / "kubeconfig", namespace="vms"), tmp_path / "out" / "cluster.json"
    file.parent.mkdir()
    file.write_text("old")
    told = WEBHOOK.run("bundle", "--file", str(file), "--kubeconfig", str(kubeconfig))
    assert (told.returncode, told.stdout) == (0, "")
    assert told.stderr.startswith(f"{file}: written from {api.origin} at ")
    pods = sum(each["kind"] == "Pod" for each in objects())
    assert f": 3 nodes, {pods} pods, " in told.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]
    assert json.loads(file.read_text())["items"][0]["namespace"] == "vms"


UNWRITABLE: Final = {
    "no folder": ("missing/cluster.json", "No such file or directory"),
    "a folder": ("here", "Is a directory"),
}


@pytest.mark.parametrize(("name", "problem"), UNWRITABLE.values(), ids=UNWRITABLE)
def test_a_file_that_can_t_be_written_is_one_sentence(
    run: Callable[..., Ran], name: str, problem: str, api: StaticApi, tmp_path: Path
) -> None:
    """And exit code 2."""
    (tmp_path / "here").mkdir()
    kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
    told = run("bundle", "--file", str(tmp_path / name), "--kubeconfig", str(kubeconfig))
    expected = f"Error: {tmp_path / name}: {problem}; expected a file that can be written: --file FILE\n"
    assert (told.code, told.out, told.err) == (2, "", expected)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["here", "kubeconfig"]


def test_without_its_pods_a_bundle_has_no_rows(run: Callable[..., Ran], api: StaticApi, tmp_path: Path) -> None:
    """The bundle is written, and its exit code is 2; status says of it why there is nothing to show."""
    api.refuse(PODS, 403, "you may not list pods")
    kubeconfig, file = api.kubeconfig(tmp_path / "kubeconfig"), tmp_path / "cluster.json"
    told = run("bundle", "--file", str(file), "--kubeconfig", str(kubeconfig))
    assert (told.code, told.out) == (2, "")
    assert "not everything could be read: pods: 403 Forbidden: you may not list pods\n" in told.err
    told = run("status", "-A", "--manifests", str(file))
    assert (told.code, told.out) == (2, "")
    assert "virt-launcher pods: 403 Forbidden: you may not list pods; expected to list them" in told.err


def test_no_kubeconfig_is_one_sentence(run: Callable[..., Ran], tmp_path: Path) -> None:
    """Without a hint at files: the command needs a cluster."""
    told = run("bundle", "--file", str(tmp_path / "f"), "--kubeconfig", str(tmp_path / "missing"))
    assert (told.code, told.out, "--manifests" in told.err) == (2, "", False)
    assert told.err.startswith(f"Error: {tmp_path}/missing: no such file; expected a kubeconfig")


def test_what_could_not_be_read_never_replaces_a_file(run: Callable[..., Ran], api: StaticApi, tmp_path: Path) -> None:
    """A complete bundle was replaced by one of errors when rights were missing."""
    kubeconfig, file = api.kubeconfig(tmp_path / "kubeconfig"), tmp_path / "cluster.json"
    assert run("bundle", "--file", str(file), "--kubeconfig", str(kubeconfig)).code == 0
    whole = file.read_bytes()
    api.refuse(PODS, 403, "you may not list pods")
    told = run("bundle", "--file", str(file), "--kubeconfig", str(kubeconfig))
    assert (told.code, told.out, file.read_bytes()) == (2, "", whole)
    assert "not everything could be read: pods: 403 Forbidden: you may not list pods\n" in told.err
    assert f"{file}: exists, and stays as it is; expected " in told.err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cluster.json", "kubeconfig"]


def test_the_format_of_other_commands_is_no_file_of_a_bundle(
    run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KUBEVIRT_COSCHEDULE_OUTPUT=json, as for `status`, wrote a file `json`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBEVIRT_COSCHEDULE_OUTPUT", "json")
    told = run("bundle")
    assert told.code == 2
    assert "Missing option '--file'" in told.err
    assert list(tmp_path.iterdir()) == []
