"""derive_virt_launcher: metadata and claims of the pod of a VM, and the objects that are refused."""

from __future__ import annotations

from typing import Any

import pytest
from support.objects.deriving import a_claim, a_cluster, a_vm, a_vmi, claims_of, derived

from webhook.explain.explain_request import request_for_document
from webhook.objects import documents
from webhook.objects.documents import BadDocument

OPT_IN = "kubevirt-scheduler/co-schedule"


def test_a_pod_is_named_and_owned_as_virt_controller_does_it() -> None:
    """The pod has a generateName, the VM's namespace, and the VMI as its controller."""
    pod = derived(a_vm({}, own={"namespace": "prod"})).pod
    assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
    assert pod["metadata"]["generateName"] == "virt-launcher-db-"
    assert "name" not in pod["metadata"]
    assert pod["metadata"]["namespace"] == "prod"
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("VirtualMachineInstance", "db", True)


def test_a_machine_without_a_namespace_is_in_the_default_one() -> None:
    """The caller's namespace is used for an object that names none."""
    assert derived(a_vm({})).pod["metadata"]["namespace"] == "vms"
    assert derived(a_vmi({})).pod["metadata"]["namespace"] == "vms"


META_ROWS = {
    "the opt-in reaches the pod": ({"annotations": {OPT_IN: "true"}}, {OPT_IN: "true"}, {}),
    "kubectl's annotations do not": ({"annotations": {"kubectl.kubernetes.io/restartedAt": "x"}}, {}, {}),
    "storage bookkeeping does not": ({"annotations": {"kubevirt.io/storage-observed-api-version": "v1"}}, {}, {}),
    "version bookkeeping does not": ({"annotations": {"kubevirt.io/latest-observed-api-version": "v1"}}, {}, {}),
    "labels reach the pod": ({"labels": {"app": "db"}}, {}, {"app": "db"}),
    "KubeVirt's own label wins": ({"labels": {"kubevirt.io": "mine"}}, {}, {}),
    "no metadata": (None, {}, {}),
}


@pytest.mark.parametrize(("meta", "annotations", "labels"), META_ROWS.values(), ids=META_ROWS)
def test_what_of_the_template_metadata_reaches_the_pod(
    meta: dict[str, Any] | None, annotations: dict[str, str], labels: dict[str, str]
) -> None:
    """The pod has the template's labels and annotations, except bookkeeping, and KubeVirt's own."""
    found = derived(a_vm({}, meta)).pod["metadata"]
    assert found["annotations"] == {"kubevirt.io/domain": "db", **annotations}
    assert found["labels"] == {**labels, "kubevirt.io": "virt-launcher"}


def test_the_metadata_of_a_vmi_reaches_the_pod() -> None:
    """A VirtualMachineInstance has no template: its own labels and annotations count."""
    found = derived(a_vmi({}, meta={"annotations": {OPT_IN: "preferred"}, "labels": {"app": "db"}})).pod["metadata"]
    assert found["annotations"][OPT_IN] == "preferred"
    assert found["labels"] == {"app": "db", "kubevirt.io": "virt-launcher"}


VOLUME_ROWS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "claim": ({"persistentVolumeClaim": {"claimName": "a"}}, ["a"]),
    "DataVolume": ({"dataVolume": {"name": "a"}}, ["a"]),
    "ephemeral over a claim": ({"ephemeral": {"persistentVolumeClaim": {"claimName": "a"}}}, ["a"]),
    "ephemeral over nothing": ({"ephemeral": {}}, []),
    "hotpluggable claim": ({"persistentVolumeClaim": {"claimName": "a", "hotpluggable": True}}, []),
    "hotpluggable DataVolume": ({"dataVolume": {"name": "a", "hotpluggable": True}}, []),
    "hotpluggable false": ({"dataVolume": {"name": "a", "hotpluggable": False}}, ["a"]),
    "memory dump": ({"memoryDump": {"claimName": "a"}}, []),
    "container disk": ({"containerDisk": {"image": "a"}}, []),
}


@pytest.mark.parametrize(("volume", "claims"), VOLUME_ROWS.values(), ids=VOLUME_ROWS)
def test_which_volumes_are_claims_of_the_pod(volume: dict[str, Any], claims: list[str]) -> None:
    """The pod has claims, DataVolumes and ephemeral disks, but no hotplugged volumes."""
    assert claims_of(derived(a_vm({"volumes": [{"name": "v", **volume}]}))) == claims


def test_a_volume_that_was_plugged_into_a_running_vmi_is_not_in_the_pod() -> None:
    """The status names hotplugged volumes that the spec does not call hotpluggable."""
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("root", "extra")]
    status = {"volumeStatus": [{"name": "root"}, {"name": "extra", "hotplugVolume": {}}]}
    assert claims_of(derived(a_vmi({"volumes": volumes}, status=status))) == ["root"]


TPM: dict[str, Any] = {"domain": {"devices": {"tpm": {"persistent": True}}}}
STATE_ROWS: dict[str, tuple[dict[str, Any], bool]] = {
    "persistent TPM": (TPM, True),
    "TPM that persists nothing": ({"domain": {"devices": {"tpm": {}}}}, False),
    "persistent TPM, off": ({"domain": {"devices": {"tpm": {"persistent": True, "enabled": False}}}}, False),
    "persistent EFI": ({"domain": {"firmware": {"bootloader": {"efi": {"persistent": True}}}}}, True),
    "EFI that persists nothing": ({"domain": {"firmware": {"bootloader": {"efi": {}}}}}, False),
    "BIOS": ({"domain": {"firmware": {"bootloader": {}}}}, False),
    "no domain": ({}, False),
}


@pytest.mark.parametrize(("spec", "kept"), STATE_ROWS.values(), ids=STATE_ROWS)
def test_which_machines_have_backend_storage(spec: dict[str, Any], kept: bool) -> None:  # noqa: FBT001 - a row
    """Only a persistent TPM or EFI needs the backend storage claim."""
    there = claims_of(derived(a_vm(spec), a_claim("persistent-state-for-db")))
    assert there == (["persistent-state-for-db"] if kept else [])


@pytest.mark.parametrize(("state", "kept"), [("Initializing", 1), ("Enabled", 1), ("Disabled", 0), (None, 0)])
def test_changed_block_tracking_has_backend_storage(state: str | None, kept: int) -> None:
    """Changed block tracking stores its bitmaps in the backend storage while it is on."""
    vm = a_vm({}, status={"changedBlockTracking": {"state": state}})
    assert len(claims_of(derived(vm, a_claim("persistent-state-for-db")))) == kept


LABEL = {"persistent-state-for": "db"}
STATE_CLAIM_ROWS: dict[str, tuple[list[Any], str]] = {
    "by label": ([a_claim("anything", labels=LABEL)], "anything"),
    "by old name": ([a_claim("persistent-state-for-db")], "persistent-state-for-db"),
    "by generated name": ([a_claim("persistent-state-for-db-x7k2p")], "persistent-state-for-db-x7k2p"),
    "label before name": ([a_claim("persistent-state-for-db"), a_claim("zz", labels=LABEL)], "zz"),
    "old name before generated": (
        [a_claim("persistent-state-for-db-x7k2p"), a_claim("persistent-state-for-db")],
        "persistent-state-for-db",
    ),
    "deleted": ([a_claim("a", labels=LABEL, deleted=True), a_claim("b", labels=LABEL)], "b"),
    "of another VM by label": (
        [a_claim("persistent-state-for-db-x7k2p", labels={"persistent-state-for": "db-x7k2p"})],
        "persistent-state-for-db-*",
    ),
    "of another VM by name": ([a_claim("persistent-state-for-db-two-x7k2p")], "persistent-state-for-db-*"),
    "of no VM": ([a_claim("abcde")], "persistent-state-for-db-*"),
    "in another namespace": ([a_claim("a", labels=LABEL, namespace="other")], "persistent-state-for-db-*"),
}


@pytest.mark.parametrize(("there", "claim"), STATE_CLAIM_ROWS.values(), ids=STATE_CLAIM_ROWS)
def test_how_the_backend_storage_claim_is_found(there: list[Any], claim: str) -> None:
    """By its label, its old name or its generated name. Without such a claim, a name that can't exist stands for it."""
    found = derived(a_vm(TPM), *there)
    assert found.pod["spec"]["volumes"] == [
        {"name": "vm-state", "persistentVolumeClaim": {"claimName": claim}},
    ]
    assert any(note.startswith("backend storage: no claim") for note in found.notes) == claim.endswith("*")


BAD_ROWS: dict[str, tuple[str, str]] = {
    "no name": (
        "spec: {template: {spec: {}}}",
        "vm.yaml:1: VirtualMachine: metadata.name: got nothing, expected a name",
    ),
    "opt-in not quoted": (
        f"spec:\n  template:\n    spec: {{}}\n    metadata:\n      annotations:\n        {OPT_IN}: true",
        (
            "vm.yaml:9: VirtualMachine: spec.template.metadata.annotations[...]: got a boolean, expected a string: put "
            "the value in quotes"
        ),
    ),
    "volumes of a wrong type": (
        "spec:\n  template:\n    spec:\n      volumes: none",
        "vm.yaml:7: VirtualMachine: spec.template.spec.volumes: got a string, expected a list",
    ),
    "affinity of a wrong type": (
        "spec:\n  template:\n    spec:\n      affinity:\n        nodeAffinity: []",
        "vm.yaml:8: VirtualMachine: spec.template.spec.affinity.nodeAffinity: got a list, expected a mapping",
    ),
}


@pytest.mark.parametrize(("text", "problem"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_bad_machine_is_refused_with_its_line(text: str, problem: str) -> None:
    """The error names file, line, kind, field, what was got and what was expected."""
    (document,) = documents.read_documents(
        f"apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {{}}\n{text}\n", "vm.yaml"
    )
    with pytest.raises(BadDocument) as refused:
        request_for_document(document, a_cluster(), "vms")
    assert refused.value.problems == (problem,)
