"""The example cluster is a whole one: each of its objects is explained by its name, and the docs say what it shows."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest
from support.drivers.command_lines import EXAMPLES
from support.drivers.serving import ROOT

from webhook import cli
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE
from webhook.objects.documents import Document
from webhook.objects.files import read_file

STATES: Final = {"apart": ["db01"], "free": ["cold01", "win01"], "stuck": ["erp01"], "together": ["web01"]}


def documents(kind: str) -> list[Document]:
    """The objects of a kind that the files describe."""
    files = sorted((ROOT / EXAMPLES).iterdir())
    return [each for file in files for each in read_file(Path(file)) if each.kind == kind]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """What a command prints as JSON, of the example cluster."""
    assert cli.main([*words, "-n", "prod-vms", "--manifests", str(ROOT / EXAMPLES), "-o", "json"]) != 2
    return json.loads(capsys.readouterr().out)


def names(kind: str) -> list[str]:
    """The names of the objects of a kind."""
    return [each.value["metadata"]["name"] for each in documents(kind)]


def test_status_shows_a_vm_of_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    """The quick start says of each VM which."""
    states = defaultdict(list)
    for item in printed(capsys, "status")["items"]:
        states[item["state"]].append(item["name"])
    assert states == STATES
    page = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    told = (
        "`web01` is together with its share-manager, `db01` is apart, `erp01` is stuck, `win01` and `cold01` are free."
    )
    assert told in page


@pytest.mark.parametrize("kind", ["vm", "vmi"])
@pytest.mark.parametrize("name", sorted(chain.from_iterable(STATES.values())))
def test_each_vm_is_explained_by_its_name(kind: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The VM asks for co-scheduling in both forms, as `status` says."""
    found = printed(capsys, "explain", f"{kind}/{name}")
    assert not found["vm"]["notAsked"]
    assert found["vm"]["state"] == next(state for state, listed in STATES.items() if name in listed)


def test_an_instance_has_the_annotation_of_its_machine() -> None:
    """KubeVirt copies it from the template of the VirtualMachine."""

    def annotations(kind: str) -> dict[str, str]:
        found = {}
        machines = names("VirtualMachine")
        for each in documents(kind):
            if each.value["metadata"]["name"] not in machines:
                continue
            source = each.value["spec"]["template"] if kind == "VirtualMachine" else each.value
            found[each.value["metadata"]["name"]] = source["metadata"]["annotations"][ANNOTATION_CO_SCHEDULE]
        return found

    assert annotations("VirtualMachineInstance") == annotations("VirtualMachine")
