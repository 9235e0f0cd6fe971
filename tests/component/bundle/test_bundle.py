"""bundle against an API server: the file that it writes, and what it says when it can't."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from support.drivers.command_line_programs import WEBHOOK
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
    told = WEBHOOK.run("bundle", "-o", str(file), "--kubeconfig", str(kubeconfig))
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
    told = run("bundle", "-o", str(tmp_path / name), "--kubeconfig", str(kubeconfig))
    expected = f"error: {tmp_path / name}: {problem}; expected a file that can be written: --output FILE\n"
    assert (told.code, told.out, told.err) == (2, "", expected)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["here", "kubeconfig"]


def test_without_its_pods_a_bundle_has_no_rows(run: Callable[..., Ran], api: StaticApi, tmp_path: Path) -> None:
    """The bundle is written, and its exit code is 1; status says of it why there is nothing to show."""
    api.refuse(PODS, 403, "you may not list pods")
    kubeconfig, file = api.kubeconfig(tmp_path / "kubeconfig"), tmp_path / "cluster.json"
    told = run("bundle", "-o", str(file), "--kubeconfig", str(kubeconfig))
    assert (told.code, told.out) == (1, "")
    assert told.err.splitlines()[-1].startswith("not everything could be read: pods: 403 Forbidden: you may not")
    told = run("status", "-A", "--manifests", str(file))
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("error: pods: 403 Forbidden: you may not list pods; expected the right to list")


def test_no_kubeconfig_is_one_sentence(run: Callable[..., Ran], tmp_path: Path) -> None:
    """Without a hint at files: the command needs a cluster."""
    told = run("bundle", "-o", str(tmp_path / "f"), "--kubeconfig", str(tmp_path / "missing"))
    assert (told.code, told.out, "--manifests" in told.err) == (2, "", False)
    assert told.err.startswith(f"error: {tmp_path}/missing: no such file; expected a kubeconfig")
