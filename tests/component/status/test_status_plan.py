"""status --plan: what it reads, and that the plan over files is that of an API server with these objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from support.drivers.serving import ROOT
from support.drivers.status_runs import (
    KUBEVIRT,
    NODES,
    Ran,
    Status,
    instance,
    machine,
    migrations,
    objects,
    put,
    sentences,
)
from support.fakes.static_api import StaticApi
from support.objects import builders
from support.objects.fleets import disk, running_pod, served

from webhook import cli
from webhook.core.observe.restart import restart_command

EXAMPLES: Final = ROOT / "manifests" / "examples" / "cluster"
Object = dict[str, Any]


class Files:
    """Runs status --plan with a file of these objects."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._file = directory / "cluster.yaml"
        self._capsys = capsys

    def __call__(self, *described: Object, words: str = "-n vms") -> Ran:
        """The run, and what it printed."""
        self._file.write_text(yaml.safe_dump_all(described), encoding="utf-8")
        code = cli.main(["status", "--plan", "--manifests", str(self._file), *words.split()])
        return Ran(code, *self._capsys.readouterr())


@pytest.fixture
def files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Files:
    """Status with a file."""
    return Files(tmp_path, capsys)


def described(memory: str = "16Gi") -> list[Object]:
    """The VMs of `objects`, on nodes with memory."""
    rest = [each for each in objects() if (each["apiVersion"], each["kind"]) != ("v1", "Node")]
    return [*rest, *(builders.node(name, allocatable={"memory": memory}) for name in NODES)]


def identity(described: Object) -> tuple[str, str, str]:
    """What names an object of `described`."""
    return described["apiVersion"], described["kind"], described["metadata"]["name"]


def requesting(pod: Object, memory: str) -> Object:
    """The pod with a request of memory."""
    pod["spec"]["containers"][0]["resources"] = {"requests": {"memory": memory}}
    return pod


def test_the_plan_is_that_of_an_api_server_with_these_objects(status: Status, api: StaticApi, files: Files) -> None:
    """All lines after the first, which names the cluster; the summary; and the exit code."""
    put(api, *described())
    live, filed = status("--plan"), files(*described())
    assert len(migrations(filed)) == 1
    assert filed.out.splitlines()[1:] == live.out.splitlines()[1:]
    assert (filed.code, filed.err) == (live.code, live.err)


def test_a_migration_takes_room_from_the_next(files: Files) -> None:
    """Of two VMs that go to one node, only the first fits."""
    more = [*disk("more"), *served("more", "node-b"), instance("more"), machine("more")]
    pods = [requesting(running_pod(vm, claim), "5Gi") for vm, claim in (("web", "page"), ("more", "more"))]
    rest = [each for each in described("8Gi") if each["metadata"]["name"] != "virt-launcher-web-aaaaa"]
    ran = files(*rest, *more, *pods)
    assert [migration["spec"]["vmiName"] for migration in migrations(ran)] == ["more"]
    said = sentences(ran, "web")[0]
    assert said.startswith("no live migration: ")
    assert "node node-b has too little of memory: 5120Mi is requested, 5120Mi of 8192Mi is taken" in said


def test_what_files_do_not_describe_is_said(files: Files) -> None:
    """No VirtualMachine and no VirtualMachineInstance, and no resources of the node."""
    kept = [each for each in objects() if each["kind"] not in ("VirtualMachineInstance", "VirtualMachine", "Node")]
    left = [*kept, *(builders.node(name, allocatable=None) for name in NODES), *map(builders.longhorn_node, NODES)]
    assert sentences(files(*left), "web") == [
        "no live migration: the free resources of node node-b are not known: no node has status.allocatable",
        f"with its next start: {restart_command('web', 'vms', None)}",
    ]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        pytest.param(
            instance("web", migratable="False"),
            "KubeVirt can't migrate the VM: DisksNotLiveMigratable",
            id="not migratable",
        ),
        pytest.param(
            instance("web") | {"status": {"conditions": [{"type": "HotVCPUChange", "status": "True"}]}},
            "the VM is not left alone: KubeVirt changes it: condition HotVCPUChange",
            id="busy",
        ),
        pytest.param(
            instance("web") | {"spec": {"nodeSelector": {"disk": "ssd"}}},
            "the VM's nodeSelector is another one than when its pod was made",
            id="changed live",
        ),
        pytest.param(
            builders.node("node-b", allocatable={"memory": "16Gi"}, taints=["weave.works/kured:PreferNoSchedule"]),
            "node node-b has the taint weave.works/kured:PreferNoSchedule, so the VM would be moved again soon",
            id="a soft taint on the node",
        ),
    ],
)
def test_what_stops_reunite_stops_a_plan(files: Files, changed: Object, why: str) -> None:
    """A migration would fail, carry a change along, or be for nothing."""
    ran = files(*(each for each in described() if identity(each) != identity(changed)), changed)
    assert migrations(ran) == []
    assert f"no live migration: {why}" in sentences(ran, "web")[0]


def test_nothing_moves_a_vm_to_a_share_manager_whose_pod_is_gone(files: Files) -> None:
    """longhorn/longhorn#7684: the ShareManager is `running` without a pod, and its ownerID moves between managers."""
    manager = builders.share_manager("page", state="running", ownerID="node-c")
    ran = files(*disk("page"), manager, *map(builders.node, NODES), instance("web"), running_pod("web", "page"))
    assert (ran.code, ran.out, ran.err) == (0, "", "nothing to do: no VM is apart or stuck\n")


def test_the_example_cluster_has_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    """Its VM that is apart is migrated, and its VM that is stuck is restarted."""
    code = cli.main(["status", "-A", "--plan", "--manifests", str(EXAMPLES)])
    ran = Ran(code, *capsys.readouterr())
    (migration,) = migrations(ran)
    assert migration["spec"] == {"vmiName": "db01", "addedNodeSelector": {"kubernetes.io/hostname": "node-a"}}
    assert "virtctl restart erp01 -n prod-vms" in ran.out
    assert (ran.code, ran.err) == (1, "1 apart, 1 stuck; 1 can be brought together by the live migrations above\n")


def test_nothing_is_written(status: Status, api: StaticApi) -> None:
    """A plan only reads: each VM's objects once, and the nodes and all pods once for all VMs."""
    put(api, *disk("more"), *served("more", "node-b"), running_pod("more", "more"), instance("more"))
    assert len(migrations(status("--plan"))) == 2
    # The configuration of the webhook is read for its setting, and for the namespace of its pods.
    assert max(api.asked.count(path) for path in set(api.asked) if "configurations" not in path) == 1
    assert len([path for path in api.asked if path.startswith("/api/v1/pods?limit")]) == 1


def test_with_nothing_to_do_no_object_is_read(status: Status, api: StaticApi) -> None:
    """The plan reads only what the rows need."""
    assert status("db cold --plan").out == ""
    assert not [path for path in api.asked if path.startswith(KUBEVIRT) and "?" not in path]
