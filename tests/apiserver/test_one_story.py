"""Whatever tells of a VM tells the same story of it, and it is the one that has happened on a real control plane."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane import audit
from support.control_plane.installed import Installed
from support.control_plane.kubectl import Kubectl
from support.control_plane.vm_events import events, written
from support.objects import builders
from support.objects.builders import NAMESPACE
from support.scenarios.admitting import WEBHOOK
from support.scenarios.one_story import COUNTS, DECIDED, HOME, STATES, VMS, Story, expected, happened, of_rows

from webhook import cli
from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_status import State

SHARE_MANAGER_WEBHOOK: Final = "share-manager.kubevirt-coschedule.io"
SUMMARY: Final = "4 VMs: 1 stuck, 1 apart, 2 together; 50 % together"
PINNED_POD: Final = "virt-launcher-pinned-1"
DESCRIBED: Final = {
    "apart": ["CoScheduled"],  # on the live migration's target nothing was decided
    "cold": ["NotCoScheduled", "ShareManagerSteered"],
    "pinned": ["CoScheduled"],
    "together": ["CoScheduled"],
}
ASKED: Final = (
    "status -o json",
    "candidates -o json",
    *(f"explain vm/{vm} -o json" for vm in VMS),
    f"explain pod/{PINNED_POD} -o json",
)
Run = Callable[[str], tuple[int, str, str]]


@pytest.fixture(scope="module")
def story(installed: Installed) -> Iterator[Story]:
    """Together, apart after a live migration, pinned and unschedulable, and started from cold."""
    with happened(installed) as told:
        yield told


@pytest.fixture
def run(story: Story, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command as the admin, in the VMs' namespace."""
    plane = story.installed.plane
    kubeconfig = plane.kubeconfig(tmp_path / "kubeconfig", plane.admin)

    def run(words: str) -> tuple[int, str, str]:
        code = cli.main([*words.split(), "-n", NAMESPACE, "--kubeconfig", str(kubeconfig)])
        return code, *capsys.readouterr()

    return run


def items(run: Run) -> dict[str, Any]:
    """VM -> item, of status -o json."""
    return {item["name"]: item for item in json.loads(run("status -o json")[1])["items"]}


def test_the_vms_are_where_they_are_said_to_be(story: Story) -> None:
    """The scenario is what it is called: the migration has led away, and the cold share-manager has followed its VM."""
    manager = story.installed.plane.api.get(story.pods["cold"][1])
    assert manager["spec"]["nodeName"] == story.nodes["cold"]
    assert story.nodes["together"] == HOME["together"]
    assert story.nodes["apart"] not in (None, HOME["apart"])
    assert story.nodes["pinned"] is None


def test_status_as_data(story: Story, run: Run) -> None:
    """States, nodes, reasons, decisions and counts."""
    code, out, err = run("status -o json")
    found = json.loads(out)
    assert (code, err.splitlines()[0], found["summary"], found["problems"]) == (
        1,
        SUMMARY,
        {**COUNTS, "stopped": 0},
        [],
    )
    assert of_rows(found["items"]) == expected(story)
    pods = {vm: f"virt-launcher-{vm}-1" for vm in VMS} | {"apart": "virt-launcher-apart-2"}
    assert {row["name"]: row["pod"] for row in found["items"]} == pods


# The server's own view.


def test_the_page(story: Story, run: Run) -> None:
    """As status tells it; since when may be later, for the page tells what was seen where objects do not tell."""
    page, found = story.page(), items(run)
    assert (page["counts"], page["late"], of_rows(page["rows"])) == (COUNTS, [], expected(story))
    for row in page["rows"]:
        item = found[row["name"]]
        assert (row["because"], row["pinned"]) == (item["because"], item["pinned"])
        assert item["since"] <= row["since"] <= page["at"]


def test_the_metrics(story: Story) -> None:
    """The page's counts and times, and the log's calls."""
    found, rows = story.metrics(), story.rows()
    assert {state: found.value("kubevirt_coschedule_vms", state=state) for state in State} == COUNTS
    decided = {each: found.value("kubevirt_coschedule_vm_decisions", decision=each) for each in Decided}
    assert decided == {each: list(DECIDED.values()).count(each) for each in Decided}
    for state in set(STATES.values()):
        oldest = min(row["since"] for row in rows.values() if row["state"] == state)
        assert (
            found.value("kubevirt_coschedule_vms_oldest_timestamp_seconds", state=state)
            == datetime.fromisoformat(oldest).timestamp()
        )
    told = {
        tuple(each.labels[label] for label in ("entry", "decision", "reason")): each.value
        for each in found.samples
        if each.name == "kubevirt_coschedule_admissions_total"
    }
    assert told == Counter((line["entry"], line["decision"], line["reason"]) for line in story.log)
    assert written(story.server, "written") == len(events(story.installed.plane.api))


def test_the_log_warns_of_the_one_that_is_stuck(story: Story, run: Run) -> None:
    """Once, in the words that status has for it."""
    (line,) = (each for each in story.server.lines() if each["message"] == "a pinned VM fits nowhere")
    assert (line["vmi"], line["pod"], line["because"]) == ("pinned", PINNED_POD, items(run)["pinned"]["because"])
    assert f"kubectl delete pod {PINNED_POD} -n " in line["to_free_it"]
    assert "if it is Once, instead: kubectl delete virtualmachineinstance pinned -n " in line["to_free_it"]


# What was decided, call by call.


@pytest.mark.parametrize(("vm", "number"), [("together", 0), ("apart", 0), ("pinned", 0), ("cold", 0), ("cold", 1)])
def test_a_decision_is_the_same_in_every_place(vm: str, number: int, story: Story) -> None:
    """In the log, on the pod, in the audit log, on the page, and on the VirtualMachineInstance."""
    plane, pod = story.installed.plane, story.pods[vm][number]
    line, webhook = story.line(pod), SHARE_MANAGER_WEBHOOK if number else WEBHOOK
    decision, why = line["decision"], f"{line['reason']}: {line['because']}"
    on = {"node": line["nodes"][0]} if "nodes" in line else {}
    told = f"{decision} on {on['node']}: {why}" if on else f"{decision}: {why}"
    assert pod["metadata"]["annotations"][builders.DECISION] == told
    said = {key: line[key] for key in ("decision", "reason", "because")}
    assert audit.annotations(plane.directory, pod, webhook) == {**said, **on}
    shown = [each for each in story.page()["decided"]["last"] if each["because"] == line["because"] and not each["dry"]]
    assert [{key: each[key] for key in said} for each in shown] == [said]
    about = [each for each in events(plane.api) if each["involvedObject"]["name"] == vm]
    volume = f"share-manager of volume pvc-{vm}: " if number else ""
    assert about[number]["message"] == volume + (told if on else why)


def test_of_a_live_migrations_target_nobody_tells_a_decision(story: Story) -> None:
    """None was asked for: no line, no annotation, nothing in the audit log, nothing on the page."""
    target, plane = story.pods["apart"][1], story.installed.plane
    name = target["metadata"]["name"]
    assert builders.DECISION not in target["metadata"]["annotations"]
    assert audit.annotations(plane.directory, target, WEBHOOK) == {}
    assert name not in {line["pod"] for line in story.log}
    assert [each["name"] for each in story.page()["decided"]["last"]].count("apart") == 1


@pytest.mark.parametrize("vm", VMS)
def test_kubectl_describe(vm: str, story: Story, tmp_path: Path) -> None:
    """Each VM's own part, in order, on the VirtualMachineInstance."""
    described = Kubectl(story.installed.plane, tmp_path)("describe", "vmi", vm, "-n", NAMESPACE)
    lines = [line for line in described.partition("Events:")[2].splitlines() if "kubevirt-coschedule" in line]
    assert [line.split()[1] for line in lines] == DESCRIBED[vm]


# What a command explains, and what it says without the cluster.


def test_explain_comes_to_the_decision_that_was_made(story: Story, run: Run) -> None:
    """Of a pod that was placed and bound, as it was created."""
    (pod,) = story.pods["together"]
    code, out, err = run(f"explain pod/{pod['metadata']['name']} -o json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["annotation"] == pod["metadata"]["annotations"][builders.DECISION]
    written = {operation["path"]: operation["value"] for operation in found["patch"]}
    assert written["/spec/affinity"] == pod["spec"]["affinity"]


def test_a_bundle_says_what_the_cluster_says(
    story: Story, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each row, each decision with its evidence, each hint, and the exit code."""
    plane, file = story.installed.plane, str(tmp_path / "cluster.json")
    kubeconfig = str(plane.kubeconfig(tmp_path / "of-bundle", plane.admin))
    assert cli.main(["bundle", "--file", file, "--kubeconfig", kubeconfig]) == 0
    capsys.readouterr()
    for words in ASKED:
        code = cli.main([*words.split(), "-n", NAMESPACE, "--manifests", file])
        assert _without_origin(code, capsys.readouterr().out) == _without_origin(*run(words)[:2]), words


def _without_origin(code: int, out: str) -> tuple[int, Any]:
    """The exit code and the JSON, without what names the cluster and the time. A command names the cluster, too."""
    told = re.sub(r" --(kubeconfig|manifests) [^\s\"]+", "", out)
    return code, json.loads(told) | {"cluster": "", "at": ""}
