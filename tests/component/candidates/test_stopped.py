"""candidates of VMs that are stopped: their rows, the next start of each, and the lines that opt them in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from support.drivers.environment import CLUSTER, remove_settings
from support.drivers.serving import write_cluster
from support.drivers.status_runs import Object, Ran
from support.fakes.static_api import StaticApi
from support.objects import builders
from support.scenarios.stopped_vms import STATES, STOPPED, items, objects

from webhook.candidates.settings import CANDIDATES
from webhook.core.reasons import ANNOTATION_OPT_IN_ALL
from webhook.explain.derive.notes import CLUSTER as DERIVED

Run = Callable[..., Ran]
COLD: Final = "claim {vm}-cold: the share-manager of volume {vm}-cold is on no node yet (state stopped)"
SIZED: Final = "not derived: what its instancetype adds, such as CPUs, memory, CPU model and node selector"
HINT: Final = "the lines that opt VMs in: --output commands\n"
LACKS: Final = f"the next pod of a stopped VM is {DERIVED}\n"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the settings and the cluster of the user who runs the tests."""
    remove_settings(monkeypatch, CANDIDATES, *CLUSTER)


@pytest.fixture
def stored() -> list[Object]:
    """The VMs behind the API server."""
    return objects()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The VMs in a file."""
    return write_cluster(tmp_path / "cluster.json", objects())


def test_a_stopped_vm_shows_what_its_next_start_would_decide(run: Run, file: Path) -> None:
    """Each VM once. A VM without a share-manager is left out, and a VM with a finished pod is not."""
    found = items(run("candidates", "-n", "vms", "-f", str(file), "-o", "json"))
    assert {name: item["state"] for name, item in found.items()} == STATES
    assert [item["node"] for name, item in found.items() if name != "web"] == [None] * len(STOPPED)
    for name in ("off", "out", "over", "sized"):
        assert (found[name]["nextStart"]["followed"], found[name]["nextStart"]["because"]) == (
            True,
            COLD.format(vm=name),
        )
    for name in ("asks", "two"):
        assert (found[name]["nextStart"]["decision"], found[name]["nextStart"]["nodes"]) == ("required", ["node-a"])
    assert [volume["claim"] for volume in found["two"]["volumes"]] == ["two-cold", "two-own", "two-root"]
    assert [name for name, item in found.items() if item["optedIn"]] == ["asks"]
    assert (found["out"]["annotation"], found["out"]["change"]) == ("false", "")
    assert {name: item["notes"] for name, item in found.items()} == {
        **{name: [DERIVED] for name in STOPPED},
        "sized": [DERIVED, SIZED],
        "web": [],
    }


def test_the_table_hides_nothing_of_what_is_not_known(run: Run, file: Path) -> None:
    """What concerns one VM is in its row; what concerns all of them is said once. The sentence counts them."""
    told = run("candidates", "-n", "vms", "-f", str(file))
    rows = {line.split()[0]: line for line in told.out.splitlines()}
    assert rows["sized"].split()[1:6] == ["-", "sized-cold:", "-", "stopped", "no"]
    assert rows["sized"].endswith(f"share-manager follows  {COLD.format(vm='sized')}; {SIZED}")
    assert rows["off"].endswith(COLD.format(vm="off"))
    counted = (
        "7 VMs with a share-manager, 1 of them apart from it, 6 stopped; 6 not opted in, 6 of those would be placed at "
        "the next start\n"
    )
    assert (told.code, told.err) == (0, counted + HINT + LACKS)
    assert LACKS not in run("candidates", "web", "-n", "vms", "-f", str(file)).err


def test_candidates_decides_as_explain_does(run: Run, file: Path) -> None:
    """For each VM, by the name that `-o name` prints; `explain` reads the VirtualMachine of a VM that is stopped."""
    names = run("candidates", "-n", "vms", "-f", str(file), "-o", "name").out.split()
    assert names == [
        *(f"virtualmachine.kubevirt.io/{name}" for name in STOPPED),
        "virtualmachineinstance.kubevirt.io/web",
    ]
    words = ("-n", "vms", "--manifests", str(file), "-o", "json")
    told = run("explain", *names[:-1], "--opt-in-all", "required", *words).report
    explained = {each["object"]["name"]: (each["decision"], each["reason"]) for each in told["items"]}
    found = items(run("candidates", *names, *words))
    decided = {name: (item["nextStart"]["decision"], item["nextStart"]["reason"]) for name, item in found.items()}
    assert {**decided, "out": ("unchanged", "OptedOut")} == {**explained, "web": decided["web"]}


def test_the_lines_opt_in_the_stopped_vms_too(run: Run, file: Path) -> None:
    """Except those that are opted in or out."""
    lines = run("candidates", "-n", "vms", "-f", str(file), "-o", "commands").out.splitlines()
    assert [line.split()[3] for line in lines if line.startswith("kubectl")] == ["off", "over", "sized", "two", "web"]
    assert [line for line in lines if line.startswith("#")] == [
        "# vms/out: the annotation kubevirt-scheduler/co-schedule is false"
    ]


@pytest.mark.parametrize(("label", "setting", "opted_in"), [("true", "off", True), ("false", "true", False)])
def test_label_and_setting_count_for_a_stopped_vm(
    run: Run, tmp_path: Path, label: str, setting: str, *, opted_in: bool
) -> None:
    """In the order in which they count for a VM that runs. No line overrides an opt-out."""
    meta = {"name": "kubevirt-coschedule", "annotations": {ANNOTATION_OPT_IN_ALL: setting}}
    configuration = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    vms = [each for each in objects() if each["kind"] != "Namespace"]
    made = [*vms, builders.labeled_namespace("vms", label), {**configuration, "metadata": meta}]
    told = run("candidates", "off", "-n", "vms", "-f", str(write_cluster(tmp_path / "f.json", made)), "-o", "json")
    off = items(told)["off"]
    assert (off["optedIn"], off["namespaceLabel"], off["change"]) == (opted_in, label, "")
    assert (off["noChange"] == "") is opted_in


@pytest.mark.parametrize(
    ("words", "shown"),
    [("-l app=shop", ["off"]), ("-l app", ["off"]), ("-l !app", ["asks", "out", "over", "sized", "two", "web"])],
)
def test_a_selector_selects_by_the_labels_of_the_template(run: Run, file: Path, words: str, shown: list[str]) -> None:
    """KubeVirt copies these to the pod."""
    told = run("candidates", "-n", "vms", "-f", str(file), "-o", "json", *words.split())
    assert sorted(items(told)) == shown


def test_a_name_without_a_share_manager_is_said(run: Run, file: Path) -> None:
    """Of VMs that run and of those that do not. VMs of other namespaces do not count."""
    told = run("candidates", "plain", "of", "-n", "vms", "-f", str(file))
    absent = "no VM of this name has a disk with a share-manager"
    assert (told.code, told.err.splitlines()) == (
        2,
        [
            "no VM of these names in namespace vms has a disk with a share-manager",
            f"plain: {absent}",
            f"of: {absent}; did you mean off?",
        ],
    )
    told = run("candidates", "-n", "empty", "-f", str(file))
    assert (told.code, told.err) == (0, "no VM in namespace empty has a disk with a share-manager\n")


def test_a_live_cluster_and_its_bundle_say_the_same(run: Run, api: StaticApi, file: Path, tmp_path: Path) -> None:
    """As the files from which both are made."""
    kubeconfig, bundle = ["--kubeconfig", str(api.kubeconfig(tmp_path / "kubeconfig"))], tmp_path / "bundle.json"
    assert run("bundle", "-o", str(bundle), *kubeconfig).code == 0
    live = run("candidates", "-A", *kubeconfig)
    assert [line.split()[1] for line in live.out.splitlines()[1:]] == [*STOPPED, "web"]
    assert run("candidates", "-A", "-f", str(bundle)) == live == run("candidates", "-A", "-f", str(file))
