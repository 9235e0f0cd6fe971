"""explain over files: the free resources of nodes, with the pods in the files; and what no rule reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.drivers.explaining import a_vm
from support.drivers.serving import cluster, write_cluster
from support.objects import builders, builders_pods

from webhook import cli

pytestmark = pytest.mark.usefixtures("no_environment")

OWN = builders_pods.asking(builders.vm_pod("db", node="node-a", claims=["disk"]), {"cpu": "64"})
OTHER = builders_pods.pod("batch", node="node-a", requests={"cpu": "64"})
Reasons = dict[str, str]


def reasons(
    pods: list[dict[str, Any]], words: str, directory: Path, capsys: pytest.CaptureFixture[str], *names: str
) -> list[Reasons]:
    """The reason of each node, for each of these VMs; for `db` by default."""
    manifests = write_cluster(directory / "cluster.json", [*cluster(), *pods])
    file = write_cluster(directory / "vms.json", [a_vm("disk", name=name) for name in names or ("db",)])
    cli.main(["explain", "-n", "vms", "-f", str(file), "--manifests", str(manifests), "-o", "json", *words.split()])
    found = json.loads(capsys.readouterr().out)
    return [{node["name"]: node["reason"] for node in each["nodes"]} for each in found.get("items", [found])]


@pytest.mark.parametrize(
    ("pods", "words", "reason"),
    [
        pytest.param([], "", "NodeFeasible", id="nobody there"),
        pytest.param([OTHER], "", "NoRoom", id="full"),
        pytest.param([OWN], "", "NodeFeasible", id="the VM's own pod"),
        pytest.param([OTHER], "--watch-pods=none", "NodeFeasible", id="room is not looked at"),
        pytest.param([], "--headroom=cpu=64", "NoRoom", id="all of it is to stay free"),
    ],
)
def test_a_node_is_evaluated_as_by_a_webhook_with_these_settings(
    pods: list[dict[str, Any]], words: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All pods of the files count, except those of the VM itself; the two settings have the same meaning."""
    (found,) = reasons(pods, words, tmp_path, capsys)
    assert found["node-a"] == reason


def test_each_vm_leaves_out_its_own_pod_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For each VM of one run, only its own pods are left out."""
    first, second = reasons([OWN], "", tmp_path, capsys, "db", "db-two")
    assert (first["node-a"], second["node-a"]) == ("NodeFeasible", "NoRoom")


def test_explain_counts_what_no_rule_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The explanation goes to standard output, what was passed over to standard error."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    manifests = write_cluster(tmp_path / "cluster.json", [*cluster(), secret, {**secret, "metadata": {"name": "t"}}])
    pod = write_cluster(tmp_path / "pod.json", [builders.virt_launcher_pod(claims=["disk"])])
    assert cli.main(["explain", "-f", str(pod), "--manifests", str(manifests), "-n", "vms"]) == 0
    out, err = capsys.readouterr()
    assert "required on node-a" in out
    assert err == f"{manifests}: ignored objects that no rule reads: 2 v1 Secret\n"
