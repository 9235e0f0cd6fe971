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
import yaml
from support.control_plane import audit
from support.control_plane.installed import Installed
from support.control_plane.kubectl import Kubectl
from support.control_plane.vm_events import events, written
from support.drivers.environment import remove_settings
from support.objects import builders
from support.objects.builders import LONGHORN_NAMESPACE, NAMESPACE
from support.scenarios.admitting import WEBHOOK
from support.scenarios.cold_starting import WEBHOOK as SHARE_MANAGER_WEBHOOK
from support.scenarios.one_story import HOME, VMS, Story, happened
from support.scenarios.one_story_told import COUNTS, DECIDED, STATES, expected, of_rows

from webhook import cli
from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_status import State
from webhook.telemetry.exposition import Family

SUMMARY: Final = "4 VMs: 2 together, 1 apart, 1 stuck\n"
PINNED_POD: Final = "virt-launcher-pinned-1"
DESCRIBED: Final = {
    "apart": ["CoScheduled"],  # on the live migration's target nothing was decided
    "cold": ["NotCoScheduled", "ShareManagerSteered"],
    "pinned": ["CoScheduled"],
    "together": ["CoScheduled"],
}
Run = Callable[[str], tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the settings of the user who runs the tests."""
    remove_settings(monkeypatch)


@pytest.fixture(scope="module")
def story(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Together, apart after a live migration, pinned and unschedulable, and started from cold."""
    with happened(installed, tmp_path_factory.mktemp("one-story")) as told:
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


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_status_as_data(form: str, story: Story, run: Run) -> None:
    """States, nodes, reasons, decisions and counts."""
    code, out, err = run(f"status -o {form}")
    found = yaml.safe_load(out)
    assert (code, err, found["summary"], found["problems"]) == (1, SUMMARY, COUNTS, [])
    assert of_rows(found["items"]) == expected(story)
    pods = {vm: f"virt-launcher-{vm}-1" for vm in VMS} | {"apart": "virt-launcher-apart-2"}
    assert {row["name"]: row["pod"] for row in found["items"]} == pods


@pytest.mark.parametrize("form", ["table", "wide"])
def test_status_in_columns(form: str, story: Story, run: Run) -> None:
    """The same, with the words of the data; what is together needs no words. Wide adds columns only."""
    code, out, err = run(f"status -o {form}")
    head, *rows = (re.split(r" {3,}", line) for line in out.splitlines())
    found = {row["VM"]: row for row in (dict(zip(head, row, strict=True)) for row in rows)}
    assert (code, err, list(found)) == (1, SUMMARY, list(VMS))
    for vm, item in items(run).items():
        told, row = expected(story)[vm], found[vm]
        at = (row["STATE"], row["NODE"], row["SHARE-MANAGERS"])
        assert at == (told.state, told.node or "-", f"{vm}: {told.share_manager}")
        silent = told.state == "together"
        to_do = f"; to do: {item['cure']}" if item["cure"] else ""
        assert row["WHY"] == ("-" if silent else f"{told.reason}: {item['because']}{to_do}")
        if form == "wide":
            shown = (row["SINCE-TIME"], row["POD"], row["DECIDED"], row["VOLUMES"])
            assert shown == (item["since"], item["pod"], told.decided, f"pvc-{vm} (running)")


def test_status_plan(story: Story, run: Run) -> None:
    """It is for those two that are not with their share-manager, and leads the one that can be led to that."""
    code, out, err = run("status --plan")
    assert (code, err) == (1, "1 apart, 1 stuck; 1 can be brought together by the live migrations above\n")
    found = items(run)
    heads = [line for line in out.splitlines() if line.startswith(f"# {NAMESPACE}/")]
    assert heads == [
        f"# {NAMESPACE}/{vm} is {STATES[vm]}, on {story.nodes[vm] or 'no node'} since {found[vm]['since']}: "
        f"{found[vm]['reason']}: {found[vm]['because']}; to do: {found[vm]['cure'].partition(': kubevirt')[0]}"
        for vm in ("apart", "pinned")
    ]
    (migration,) = (each for each in yaml.safe_load_all(out) if each)
    there = {"kubernetes.io/hostname": f"host-{HOME['apart']}"}
    assert migration["spec"] == {"vmiName": "apart", "addedNodeSelector": there}


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
    assert {state: found.value(Family.VMS.title, state=state) for state in State} == COUNTS
    decided = {each: found.value(Family.VM_DECISIONS.title, decision=each) for each in Decided}
    assert decided == {each: list(DECIDED.values()).count(each) for each in Decided}
    for state in set(STATES.values()):
        oldest = min(row["since"] for row in rows.values() if row["state"] == state)
        assert found.value(Family.VMS_SINCE.title, state=state) == datetime.fromisoformat(oldest).timestamp()
    told = {
        tuple(each.labels[label] for label in ("entry", "decision", "reason")): each.value
        for each in found.samples
        if each.name == Family.ADMISSIONS.title
    }
    assert told == Counter((line["entry"], line["decision"], line["reason"]) for line in story.log)
    assert written(story.server, "written") == len(events(story.installed.plane.api))


def test_the_log_warns_of_the_one_that_is_stuck(story: Story, run: Run) -> None:
    """Once, in the words that status has for it."""
    (line,) = (each for each in story.server.lines() if each["message"] == "a pinned VM fits nowhere")
    assert (line["vmi"], line["pod"], line["because"]) == ("pinned", PINNED_POD, items(run)["pinned"]["because"])
    assert "virtctl restart pinned -n " in line["to_free_it"]
    assert "Once: kubectl delete virtualmachineinstance pinned -n " in line["to_free_it"]


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
    shown = [each for each in story.page()["decided"]["new"] if each["because"] == line["because"] and not each["dry"]]
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
    assert [each["name"] for each in story.page()["decided"]["new"]].count("apart") == 1


@pytest.mark.parametrize("vm", VMS)
def test_kubectl_describe(vm: str, story: Story, tmp_path: Path) -> None:
    """Each VM's own part, in order, on the VirtualMachineInstance."""
    described = Kubectl(story.installed.plane, tmp_path)("describe", "vmi", vm, "-n", NAMESPACE)
    lines = [line for line in described.partition("Events:")[2].splitlines() if "kubevirt-coschedule" in line]
    assert [line.split()[1] for line in lines] == DESCRIBED[vm]


# explain


@pytest.mark.parametrize("vm", VMS)
@pytest.mark.parametrize("asked", ["vm/{vm}", "pod/{pod}"])
def test_explain_a_vm(asked: str, vm: str, story: Story, run: Run) -> None:
    """Where its pod is and what it was given, where its share-manager is, and what is to do where it is stuck."""
    item, told = items(run)[vm], expected(story)[vm]
    words = f"explain {asked.format(vm=vm, pod=item['pod'])}"
    found, (_, text, _) = json.loads(run(f"{words} -o json")[1]), run(words)
    given = story.installed.plane.api.get(story.pods[vm][-1 if vm == "apart" else 0])["metadata"]["annotations"]
    decision = given.get(builders.DECISION)
    assert found["running"] == [
        {"name": item["pod"], "phase": "Pending", "node": told.node, "decision": decision}  # no kubelet is here
    ]
    shown = decision or f"no annotation {builders.DECISION}"
    assert re.search(rf"^  {item['pod']} +Pending +{told.node or '-'} +{re.escape(shown)}$", text, re.MULTILINE)
    (claim,), volume = found["claims"], item["volumes"][0]
    assert (claim["node"], claim["reason"], claim["sentence"]) == (volume["node"], volume["reason"], volume["because"])
    assert (claim["volumeHandle"], claim["shareManager"]["state"]) == (volume["volume"], volume["shareManager"])
    assert f"    =   node {told.share_manager}" in text
    hints = [f"{item['because']}; the webhook decides again for a new pod"] if told.state == "stuck" else []
    assert [hint.partition(": virtctl")[0] for hint in found["hints"]] == hints
    assert all(f"  Hint: {hint}" in text for hint in hints)


@pytest.mark.parametrize("vm", VMS)
def test_explain_a_volume(vm: str, story: Story, run: Run) -> None:
    """Where its share-manager is and what that was given, and by which VM it is used, on which node."""
    item, told = items(run)[vm], expected(story)[vm]
    words = f"explain volume/pvc-{vm}"
    found, (_, text, _) = json.loads(run(f"{words} -o json")[1]), run(words)
    (running,), chain = found["running"], found["volume"]
    manager = story.installed.plane.api.get(builders.share_manager_pod(f"pvc-{vm}", namespace=LONGHORN_NAMESPACE))[
        "metadata"
    ]
    assert (running["node"], running["decision"]) == (told.share_manager, manager["annotations"].get(builders.DECISION))
    assert chain["shareManager"] == {"state": item["volumes"][0]["shareManager"], "ownerID": told.share_manager}
    used = [(each["vm"], each["pod"]["name"], each["pod"]["node"]) for each in chain["claims"][0]["vms"]]
    assert (vm, item["pod"], told.node) in used
    where = f"on {told.node}" if told.node else "not scheduled"
    assert f"pod {item['pod']}, Pending, {where}" in text
