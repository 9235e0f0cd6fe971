"""candidates against an API server, and on files: the table, JSON, and the lines that opt VMs in."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from support.drivers.environment import CLUSTER, remove_settings
from support.drivers.status_runs import Object, instance, objects
from support.fakes.static_api import StaticApi
from support.objects import builders

from webhook import cli
from webhook.candidates.settings import CANDIDATES
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE

Run = Callable[..., tuple[int, str, str]]
PODS: Final = "/api/v1/pods"
ASKED: Final = ("db", "far")


def _without_annotation(each: Object) -> Object:
    """The pod of a VM that has not opted in, except those of two VMs."""
    owners = each["metadata"].get("ownerReferences") or [{}]
    if each["kind"] == "Pod" and owners[0].get("kind") == "VirtualMachineInstance" and owners[0]["name"] not in ASKED:
        each["metadata"]["annotations"].pop(ANNOTATION_CO_SCHEDULE, None)
    return each


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the settings and the cluster of the user who runs the tests."""
    remove_settings(monkeypatch, CANDIDATES, *CLUSTER)


@pytest.fixture
def stored() -> list[Object]:
    """The VMs behind the API server. Two have opted in. Nobody owns the instance `mail`."""
    made = [_without_annotation(each) for each in objects()]
    return [instance("mail", owner=None) if _is_mail(each) else each for each in made]


def _is_mail(each: Object) -> bool:
    return bool(each["kind"] == "VirtualMachineInstance" and each["metadata"]["name"] == "mail")


@pytest.fixture
def run(api: StaticApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs candidates with a kubeconfig for the API server; its context is in namespace vms."""
    kubeconfig = api.kubeconfig(tmp_path / "kubeconfig", namespace="vms")

    def ran(*words: str) -> tuple[int, str, str]:
        cluster = [] if "--manifests" in words else ["--kubeconfig", str(kubeconfig)]
        return (cli.main(["candidates", *words, *cluster]), *capsys.readouterr())

    return ran


def test_all_vms_with_a_share_manager_are_shown_whether_they_opted_in_or_not(run: Run) -> None:
    """The sentence below the table counts them."""
    code, out, err = run()
    head, *lines = [line.split() for line in out.splitlines()]
    assert (code, head[0], [line[0] for line in lines]) == (0, "VM", ["cold", "db", "mail", "new", "web"])
    shown = {line.split()[0]: line for line in out.splitlines()}
    assert shown["db"].split()[4:6] == ["together", "yes"]
    assert "required: node-b" in shown["web"]
    assert " no " in shown["web"]
    assert "share-manager follows" in shown["cold"]
    told = (
        "5 VMs with a share-manager, 1 of them apart from it; 4 not opted in, 4 of those would be placed at the next "
        "start\nthe lines that opt VMs in: --output commands\n"
    )
    assert err == told


def test_the_lines_opt_in_each_vm_that_has_a_virtual_machine(run: Run) -> None:
    """Each is a command of kubectl with a merge patch of the VM's template."""
    code, out, _ = run("-o", "commands")
    commands = [words for line in out.splitlines() if (words := shlex.split(line, comments=True))]
    assert (code, [words[3] for words in commands]) == (0, ["cold", "new", "web"])
    assert "# vms/mail: no VirtualMachine owns this instance: its creator can set the annotation\n" in out
    assert commands[0][:3] == ["kubectl", "patch", "virtualmachine"]
    patch = json.loads(commands[0][-1])
    assert patch["spec"]["template"]["metadata"]["annotations"] == {ANNOTATION_CO_SCHEDULE: "true"}


def _opted_out(tmp_path: Path, label: str | None) -> str:
    """A file with the VM `web`, whose annotation is "false" if its Namespace has no label."""
    made = [*map(_without_annotation, objects()), builders.labeled_namespace("vms", label)]
    for each in made:
        if label is None and each["kind"] == "Pod" and each["metadata"]["name"].startswith("virt-launcher-web"):
            each["metadata"]["annotations"][ANNOTATION_CO_SCHEDULE] = "false"
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))
    return str(file)


_NO_ANNOTATION: Final = "the pod has no annotation kubevirt-scheduler/co-schedule"


@pytest.mark.parametrize(
    ("label", "shown", "why"),
    [
        (None, "no (annotation: false)", "the annotation kubevirt-scheduler/co-schedule is false"),
        ("false", "no (Namespace: false)", f"{_NO_ANNOTATION}, and this label of Namespace vms is false"),
    ],
)
def test_no_line_overrides_an_opt_out(run: Run, tmp_path: Path, label: str | None, shown: str, why: str) -> None:
    """A comment says who has opted the VM out, and the table says what they wrote."""
    words = ("-n", "vms", "--manifests", _opted_out(tmp_path, label))
    lines = run(*words, "-o", "commands")[1].splitlines()
    assert [line for line in lines if "web" in line] == [f"# vms/web: {why}"]
    assert [shown in line for line in run(*words)[1].splitlines() if line.startswith("web")] == [True]
    web = next(item for item in json.loads(run(*words, "-o", "json")[1])["items"] if item["name"] == "web")
    assert (web["change"], web["noChange"], web["namespaceLabel"]) == ("", why, label)


def test_json_and_yaml_have_the_same(run: Run) -> None:
    """With all namespaces a VM of another one is there, too."""
    code, out, _ = run("-A", "-o", "json")
    found: dict[str, Any] = json.loads(out)
    assert (code, found["problems"]) == (0, [])
    items = {(item["namespace"], item["name"]): item for item in found["items"]}
    assert ("other", "far") in items
    web = items["vms", "web"]
    assert (web["state"], web["optedIn"], web["annotation"]) == ("apart", False, None)
    assert web["nextStart"]["decision"] == "required"
    assert web["nextStart"]["nodes"] == ["node-b"]
    assert web["change"].startswith("kubectl patch virtualmachine web -n vms ")
    assert items["vms", "mail"]["change"] == ""
    assert yaml.safe_load(run("-A", "-o", "yaml")[1])["items"] == found["items"]


def test_a_bundle_says_what_its_cluster_says(run: Run, api: StaticApi, tmp_path: Path) -> None:
    """So somebody else can answer what a cluster would gain."""
    file = tmp_path / "cluster.json"
    live = run("-A")
    assert cli.main(["bundle", "-o", str(file), "--kubeconfig", str(api.kubeconfig(tmp_path / "other"))]) == 0
    assert run("-A", "--manifests", str(file))[1] == live[1]


def test_candidates_takes_what_status_takes(run: Run) -> None:
    """Names, labels, and output for other programs."""
    code, out, err = run("web", "vm/db", "--no-headers")
    assert (code, [line.split()[0] for line in out.splitlines()]) == (0, ["db", "web"])
    assert err.startswith("2 VMs with a share-manager, 1 of them apart from it; ")
    code, out, _ = run("-o", "name", "-l", "!nothing", "-A")
    assert (code, out.splitlines()[-1]) == (0, "virtualmachineinstance.kubevirt.io/web")
    code, out, err = run("wbe")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "no VM of these names in namespace vms has a disk with a share-manager",
        "wbe: no VM of this name has a disk with a share-manager; did you mean web?",
    ]


def test_without_the_pods_there_is_one_sentence(run: Run, api: StaticApi) -> None:
    """And exit code 2: nothing can be said of any VM."""
    api.refuse(PODS, 403, "you may not list pods")
    code, out, err = run()
    assert (code, out) == (2, "")
    assert err.startswith("error: pods: 403 Forbidden: you may not list pods; expected ")
    assert err.count("\n") == 1


def test_what_could_not_be_read_is_said(run: Run, api: StaticApi) -> None:
    """The exit code is 1."""
    api.refuse("/apis/longhorn.io/v1beta2/namespaces/longhorn-system/sharemanagers", 403, "you may not")
    code, _, err = run()
    assert code == 1
    assert "not everything could be read: ShareManager: 403 Forbidden" in err


def test_a_namespace_without_such_vms_is_a_sentence(run: Run) -> None:
    """It names the namespace."""
    assert run("-n", "empty") == (0, "", "no VM in namespace empty has a disk with a share-manager\n")


def test_two_settings_that_exclude_each_other_are_refused(run: Run) -> None:
    """With one sentence."""
    code, _, err = run("-A", "-n", "vms")
    assert (code, "got --all-namespaces and --namespace: expected one of the two" in err) == (2, True)
