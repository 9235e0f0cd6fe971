"""One run of `reunite` on a cluster that was read: what it tells, what it asks for, and what each answer leads to."""

from __future__ import annotations

import asyncio
import json
from io import StringIO
from pathlib import Path
from unittest.mock import Mock

import pytest
from click import UsageError
from support.fakes.views import cluster
from support.objects import builders
from support.objects.reunite_vms import ago
from support.scenarios import vm_scenes
from support.scenarios.reunite_runs import (
    DEFAULTS,
    FORBID,
    KUBEVIRT,
    MIGRATION,
    MOVES,
    NOW,
    Answering,
    Object,
    Told,
    event,
    moved,
    told,
    vmi,
    went,
)

from webhook.objects.cluster import Cluster
from webhook.reunite import run as reunite_run
from webhook.reunite.reports import EventReason
from webhook.reunite.settings import ReuniteSettings
from webhook.reunite.writer import Result, Written
from webhook.settings import selector


@pytest.mark.parametrize("writer", [None, Answering()], ids=["client", "server"])
def test_a_dry_run_says_what_it_would_do(writer: Answering | None) -> None:
    """In the words of the run that does it, also if the API server would accept it."""
    run = went(moved(), writer, dry_run="server" if writer else "client")
    assert told(run) == [("moved", EventReason.DRY_RUN, f"would create {MOVES}")]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Written(Result.DONE), ("moved", EventReason.STARTED, MOVES + FORBID)),
        (Written(Result.EXISTS, "exists"), ("moved", EventReason.WAITING, "something else was faster: exists")),
        (Written(Result.REFUSED, "a quota"), ("moved", EventReason.REFUSED, f"{MOVES}; not done: a quota")),
        (
            Written(Result.UNKNOWN, "no answer"),
            ("moved", EventReason.REFUSED, f"{MOVES}; not known to be done: no answer"),
        ),
    ],
    ids=lambda value: value.result.value if isinstance(value, Written) else "",
)
def test_each_answer_of_the_api_server_is_reported(answer: Written, expected: Told) -> None:
    """One request, whatever comes of it."""
    writer = Answering(answer)
    assert told(went(moved(), writer)) == [expected]
    assert writer.asked == [f"create vms/{MIGRATION}"]


@pytest.mark.parametrize(("answer", "count"), [(Result.REFUSED, 2), (Result.UNKNOWN, 1), (Result.DONE, 1)])
def test_only_a_refusal_leaves_the_turn_to_the_next_vm(answer: Result, count: int) -> None:
    """Without an answer the migration may run."""
    second = json.loads(json.dumps(vm_scenes.moved()).replace("moved", "other").replace("page", "another-page"))
    writer = Answering(Written(answer, "because"))
    went(moved(*second, vmi("other")), writer, at_once=1)
    assert len(writer.asked) == count


@pytest.mark.parametrize(
    ("there", "written"),
    [
        pytest.param([], 1, id="none"),
        pytest.param([event(MOVES + FORBID, 1_799)], 0, id="a young one"),
        pytest.param([event(MOVES + FORBID, 1_800)], 1, id="an old one"),
        pytest.param([event("something else", 9)], 1, id="another one"),
        pytest.param([event(MOVES + FORBID, 9, uid="uid-before")], 1, id="one of the VM's last start"),
        pytest.param([event(MOVES + FORBID, 9, namespace="x")], 1, id="a forged one of another namespace"),
    ],
)
def test_an_event_is_repeated_after_half_an_hour(there: list[Object], written: int) -> None:
    """What the cluster has is not written again."""
    writer = Answering()
    run = went(moved(*there), writer)
    assert asyncio.run(run.write_events(writer)) == []
    assert [each.message for each in writer.events] == [MOVES + FORBID] * written
    assert {(each.name, each.uid) for each in writer.events} == ({("moved", "uid-moved")} if written else set())


def test_an_event_of_a_dry_run_says_so_and_one_that_is_lost_is_known() -> None:
    """The command then tells the first."""
    quota = Written(Result.REFUSED, "a quota")
    writer = Answering(quota)
    assert asyncio.run(went(moved()).write_events(writer)) == [quota]
    assert [each.message for each in writer.events] == [f"would create {MOVES}; --dry-run=client"]


def test_a_reader_that_goes_away_keeps_no_event_from_being_written() -> None:
    """As in `reunite --dry-run=none | head -1`: the table ends, and the run goes on."""
    stdout = Mock(write=Mock(side_effect=BrokenPipeError))
    went(moved(), Answering()).show("files", stdout)
    stdout.write.assert_called_once()


def shown(found: Cluster, output: str) -> str:
    """What a dry run prints in this format."""
    stdout = StringIO()
    went(found, output=output, all_namespaces=True).show("files", stdout)
    return stdout.getvalue()


def test_each_format_has_the_vms_of_the_table() -> None:
    """JSON also counts the VMs that are not apart, and has each VM as `status` has it."""
    assert shown(moved(), "name") == "virtualmachineinstance.kubevirt.io/moved\n"
    head, line = (each.split() for each in shown(moved(), "wide").splitlines())
    assert head == ["NAMESPACE", "VM", "ACTION", "NODE", "SHARE-MANAGERS", "SINCE", "WHY"]
    assert line[:6] == ["vms", "moved", "migrate", "node-b", "page:", "node-a"]
    found = json.loads(shown(moved(), "json"))
    (item,) = found["items"]
    assert (found["cluster"], found["dryRun"], found["summary"]["apart"]) == ("files", "client", 1)
    assert sum(found["summary"].values()) > 1
    assert (item["action"], item["reason"], item["message"]) == ("migrate", "ReuniteDryRun", f"would create {MOVES}")
    assert (item["vm"]["name"], item["vm"]["state"], item["vm"]["node"]) == ("moved", "apart", "node-b")


def test_without_a_vm_that_is_apart_a_format_for_programs_is_empty() -> None:
    """No sentence stands where a program reads names."""
    nobody = cluster(KUBEVIRT, builders.share_manager("pvc-a"))
    assert shown(nobody, "name") == ""
    assert json.loads(shown(nobody, "json"))["items"] == []


def test_files_are_only_read(tmp_path: Path) -> None:
    """A dry run needs no cluster; another one can't have files."""
    with pytest.raises(UsageError, match="expected a live cluster to write to"):
        ReuniteSettings(**{**DEFAULTS, "manifests": tmp_path, "dry_run": "none"})


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"output": "yaml", "dry_run": "none"}, "got --dry-run none and --output yaml: expected one of the two"),
        ({"now": True}, "got --now: expected --output yaml beside it"),
    ],
)
def test_a_list_is_not_created_by_the_program(settings: dict[str, object], problem: str) -> None:
    """Its user creates it, and alone leaves out waits."""
    with pytest.raises(UsageError, match=problem):
        ReuniteSettings(**{**DEFAULTS, **settings})


def test_a_namespace_that_is_being_deleted_takes_no_event_and_no_migration() -> None:
    """The API server refuses each new object in it. The run has not failed."""
    metadata = {"name": "vms", "deletionTimestamp": ago(9, NOW)}
    terminating = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    writer = Answering(Written(Result.REFUSED, "it is being terminated"))
    run = went(moved(terminating), writer)
    assert [each.message for each in run.reports] == ["NotMovable: it is being deleted"]
    assert asyncio.run(run.write_events(writer)) == []
    assert not writer.asked
    assert not writer.events


@pytest.mark.parametrize("where", ["the VMI", "the VirtualMachine", "its template"])
def test_an_annotation_keeps_a_vm_out_wherever_it_is(where: str) -> None:
    """The VMI of a VM that runs does not get an annotation that is written later."""
    metadata = {"annotations": {"kubevirt-scheduler/reunite": "false"}}
    owner = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "moved", "namespace": "vms"},
    }
    owner["spec"] = {"template": {"metadata": metadata if where == "its template" else {}, "spec": {}}}
    instance = vmi()
    if where != "its template":
        (instance if where == "the VMI" else owner)["metadata"] |= metadata
    (said,) = went(moved(owner, instance)).reports
    assert said.message == "NotAsked: the VM's annotation kubevirt-scheduler/reunite is false"


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({"names": ("vm/moved",)}, ""),
        ({"names": ("db",)}, "1 VM of these names in any namespace, none apart (1 together)"),
        ({"all_namespaces": False, "namespace": "vms"}, ""),
        ({"all_namespaces": False, "namespace": "others"}, "no VM in namespace others runs and asks for co-scheduling"),
        ({"all_namespaces": False}, "no VM in namespace default runs and asks for co-scheduling"),
        ({"selector": selector("!app")}, ""),
        (
            {"selector": selector("app=none")},
            "no VM with labels app=none in any namespace runs and asks for co-scheduling",
        ),
    ],
    ids=["a name", "another name", "a namespace", "another namespace", "the usual namespace", "labels", "other labels"],
)
def test_what_was_not_chosen_is_not_told(chosen: dict[str, object], told: str) -> None:
    """By name, namespace or labels, as in `status`. The sentence of an empty run says where it looked."""
    run, stdout = went(moved(), **chosen), StringIO()
    run.show("files", stdout)
    assert [each.row.name for each in run.reports] == ([] if told else ["moved"])
    if told:
        assert stdout.getvalue() == f"nothing to do: {told}\n"


def test_one_run_writes_no_more_than_so_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run writes those that are left."""
    monkeypatch.setattr(reunite_run, "_EVENTS", 1)
    second = json.loads(json.dumps(vm_scenes.moved()).replace("moved", "other").replace("page", "another-page"))
    writer = Answering()
    run = went(moved(*second, vmi("other")), writer)
    assert len(run.reports) == 2
    assert asyncio.run(run.write_events(writer)) == []
    assert len(writer.events) == 1
