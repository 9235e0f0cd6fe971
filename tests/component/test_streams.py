"""The program on real pipes, full disks and wrong files: its exit code is of the answer, its words are a user's."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from support.drivers.command_lines import EXAMPLES, WEBHOOK, ended
from support.drivers.serving import write_cluster
from support.drivers.status_runs import Ran
from support.objects.fleets import disk, running_pod, served

pytestmark = pytest.mark.slow

VM: Final = "manifests/examples/virtual-machine.yaml"
TO_DO: Final = (
    "see that the webhook runs (kubectl get mutatingwebhookconfiguration kubevirt-coschedule), and live-migrate the VM "
    "to node node-a, if it can run there"
)


@pytest.fixture
def apart(tmp_path: Path) -> Path:
    """A cluster of five VMs in namespace vms, all apart."""
    claims = {f"db{number}": f"root-{number}" for number in range(5)}
    disks = [each for claim in claims.values() for each in (*disk(claim), *served(claim, "node-b"))]
    return write_cluster(tmp_path / "cluster.json", [*disks, *(running_pod(*each) for each in claims.items())])


ASSUMED: Final = "mode required (assumed), opt-in-all off (assumed), audit off (assumed), shortlist auto (assumed)"


def without_a_reader(*words: str) -> Any:
    """The program, whose reader has gone before it writes."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return WEBHOOK.run(*words, stdout=writer)
    finally:
        os.close(writer)


@pytest.mark.parametrize("output", ["table", "wide", "json"])
def test_status_without_a_reader_tells_by_its_exit_code_that_vms_are_apart(output: str, apart: Path) -> None:
    """As in `status | head -1` under `set -o pipefail`; the summary is on standard error."""
    told = without_a_reader("status", "-n", "vms", "-o", output, "--manifests", str(apart))
    assert (told.returncode, told.stderr.splitlines()[0]) == (1, "5 VMs: 5 apart; 0 % together")


@pytest.mark.parametrize(("vm", "code"), [("db01", 0), ("win01", 1)])
def test_explain_without_a_reader_tells_by_its_exit_code_what_is_decided(vm: str, code: int) -> None:
    """0 if the webhook would ask for a node, 1 if not."""
    told = without_a_reader("explain", vm, "-n", "prod-vms", "--manifests", EXAMPLES, "-o", "json")
    assert (told.returncode, "Traceback" in told.stderr) == (code, False)


@pytest.mark.parametrize("words", ["explain --help", "status --help", "--version", "status --helpp"])
def test_a_full_disk_for_both_streams_is_an_error_too(words: str) -> None:
    """Nothing can be said then; the exit code says it."""
    told = ended(["bash", "-c", f"{sys.executable} -m {WEBHOOK.module} {words} > /dev/full 2> /dev/full"])
    assert told.returncode == 2


def test_no_row_in_a_namespace_does_not_deny_the_vms_of_others(run: Callable[..., Ran], apart: Path) -> None:
    """The namespace that was looked in, and how many VMs ask elsewhere."""
    told = run("status", "--manifests", str(apart))
    assert (told.code, told.out) == (0, "")
    assert told.err.splitlines()[0] == (
        "no running VM asks for co-scheduling in namespace default; to see 5 in other namespaces: --all-namespaces"
    )


def test_a_name_without_a_row_does_not_deny_the_other_vms(run: Callable[..., Ran], apart: Path) -> None:
    """Five run and ask in that namespace."""
    told = run("status", "nope", "-n", "vms", "--manifests", str(apart))
    assert told.code == 2
    assert told.err.splitlines()[0] == "none of these VMs runs and asks for co-scheduling in namespace vms"


def test_an_empty_cluster_has_no_vm_in_any_namespace(run: Callable[..., Ran], tmp_path: Path) -> None:
    """With --all-namespaces there is nowhere else to look."""
    file = write_cluster(tmp_path / "cluster.json", served("root", "node-a"))
    told = run("status", "-A", "--manifests", str(file))
    assert told.code == 0
    assert told.err.splitlines()[0] == "no running VM asks for co-scheduling in any namespace"


def test_labels_that_no_pod_has_do_not_deny_the_other_vms(run: Callable[..., Ran], apart: Path) -> None:
    """The sentence names the labels, in both commands that take them."""
    told = run("status", "-A", "--manifests", str(apart), "-l", "app=db,!old")
    assert (told.code, told.out) == (0, "")
    assert told.err.splitlines()[0] == "no running VM with labels app=db,!old asks for co-scheduling in any namespace"
    told = run("candidates", "-A", "--manifests", str(apart), "-l", "app=db")
    assert (told.code, told.err.splitlines()) == (
        0,
        [
            "no running VM with labels app=db in any namespace has a disk with a share-manager",
            f"the webhook's settings: {ASSUMED}",
            "only VMs that run are shown: no VirtualMachine is described",
        ],
    )


@pytest.mark.parametrize("command", ["status", "candidates"])
@pytest.mark.parametrize("content", ["", "apiVersion: v1\nkind: List\nitems: null\n", json.dumps(disk("root")[0])])
def test_files_without_a_pod_do_not_tell_that_no_vm_runs(
    run: Callable[..., Ran], content: str, command: str, tmp_path: Path
) -> None:
    """The sentence says what is missing. Only a bundle tells that there is no pod."""
    file = tmp_path / "cluster.yaml"
    file.write_text(content)
    told = run(command, "-A", "--manifests", str(file))
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(f"Error: {file}: no Pod is described; expected the pods of the cluster")


def test_what_a_shell_makes_of_a_command_is_a_file(apart: Path) -> None:
    """`--manifests <(...)` is a pipe, and /dev/null a device."""
    told = ended(
        ["bash", "-c", f"{sys.executable} -m {WEBHOOK.module} status -n vms --manifests <(cat {apart}) -o name"]
    )
    assert (told.returncode, len(told.stdout.splitlines())) == (1, 5), told.stderr
    told = WEBHOOK.run("status", "--manifests", os.devnull)
    assert (told.returncode, told.stderr[:30]) == (2, f"Error: {os.devnull}: no Pod is de")


@pytest.mark.parametrize("words", [("-o", "json"), ("-o", "wide")])
def test_a_command_for_a_vm_of_files_asks_the_same_files(run: Callable[..., Ran], words: tuple[str, ...]) -> None:
    """Else it would ask the user's cluster."""
    told = run("status", "db01", "-n", "prod-vms", "--manifests", EXAMPLES, *words)
    command = f"kubevirt-coschedule reunite db01 -n prod-vms -o yaml --now --manifests {EXAMPLES}"
    assert command in told.out
    assert f"To do:    {TO_DO}: {command}\n" in run("explain", "vm/db01", "-n", "prod-vms", "--manifests", EXAMPLES).out


def test_a_name_of_another_namespace_or_nearly_a_name_is_pointed_out(run: Callable[..., Ran]) -> None:
    """In all commands that take names, on files."""
    elsewhere, near = "; there is one in namespace prod-vms: -n prod-vms\n", "; did you mean db01?\n"
    for words in (["status", "db01", "--manifests"], ["explain", "vm/db01", "--manifests"]):
        told = run(*words, EXAMPLES)
        assert (told.code, told.err.endswith(elsewhere)) == (2, True)
    for words in (["status", "db1"], ["explain", "vm/db1"], ["candidates", "db1"]):
        told = run(*words, "--manifests", EXAMPLES, "-n", "prod-vms")
        assert (told.code, told.err.endswith(near)) == (2, True)


def test_a_vm_that_does_not_ask_is_no_misspelled_one(run: Callable[..., Ran]) -> None:
    """`did you mean erp01?` was said of a VM that exists."""
    told = run("status", "app01", "-n", "prod-vms", "--manifests", EXAMPLES)
    assert (told.code, "did you mean" in told.err) == (1, False)
    command = f"kubevirt-coschedule explain vmi/app01 -n prod-vms --manifests {EXAMPLES}"
    last = told.err.splitlines()[-1]
    assert last.startswith("app01: the VM in namespace prod-vms does not ask for co-scheduling: NotOptedIn: ")
    assert last.endswith(f"; {command}")
    assert run(*shlex.split(command)[1:]).code == 1
    told = run("explain", "vm/app01", "-n", "prod-vms", "--manifests", EXAMPLES)
    assert told.err.endswith("; there is a VirtualMachineInstance without one: vmi/app01\n")


@pytest.mark.parametrize("command", ["status", "candidates"])
def test_an_object_of_another_kind_is_refused_at_once(run: Callable[..., Ran], command: str) -> None:
    """A command for `vm/pod/x` was suggested."""
    told = run(command, "pod/x", "vm/db01", "-n", "prod-vms", "--manifests", EXAMPLES)
    assert (told.code, told.out) == (2, "")
    assert told.err.splitlines()[-1] == "Error: got 'pod/x': expected the name of a VM, or vm/NAME"


def test_what_is_found_is_explained_before_the_error(run: Callable[..., Ran]) -> None:
    """The exit code is of the name that is missing."""
    told = run("explain", "vm/db01", "vm/nope", "-n", "prod-vms", "--manifests", EXAMPLES)
    assert (told.code, told.out.splitlines()[0]) == (2, "VirtualMachine prod-vms/db01 (vm/db01)")
    assert told.err.splitlines()[-1].startswith("Error: vm/nope: no VirtualMachine nope in namespace prod-vms")


@pytest.mark.parametrize("words", ["status", "explain vm/db", "reunite"])
@pytest.mark.parametrize("content", ["word", "12", "[clusters]", "clusters: 5"])
def test_a_file_that_is_not_a_kubeconfig_is_called_so(
    run: Callable[..., Ran], words: str, content: str, tmp_path: Path
) -> None:
    """Not by what Python says of it."""
    file = tmp_path / "kubeconfig"
    file.write_text(content)
    told = run(*words.split(), "--kubeconfig", str(file))
    assert told.code == 2
    assert told.err.startswith(f"Error: {file}: not a kubeconfig as `kubectl config view` prints one; ")
    assert "object" not in told.err


def test_a_node_named_12_is_to_be_quoted(run: Callable[..., Ran], tmp_path: Path) -> None:
    """YAML reads a number, and Kubernetes refuses it as well."""
    file = tmp_path / "node.yaml"
    file.write_text("apiVersion: v1\nkind: Node\nmetadata:\n  name: 12\n")
    told = run("status", "--manifests", str(file))
    assert (told.code, told.err) == (
        2,
        f"Error: {file}:4: Node: metadata.name: got a number, expected a string: put the value in quotes\n",
    )


def test_the_shipped_vm_is_explained_without_a_remark_on_its_disk(run: Callable[..., Ran]) -> None:
    """The claim stands in the same file, and nobody asks to explain it."""
    told = run("explain", "-f", VM, "--manifests", EXAMPLES)
    assert (told.code, "left out" in told.err) == (0, False)
    assert told.out.startswith("VirtualMachine prod-vms/db01 ")
