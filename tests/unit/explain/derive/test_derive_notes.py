"""Notes and hints on a derived pod."""

from __future__ import annotations

from typing import Any

import pytest
from support.objects.deriving import a_vm, a_vmi, derived

OPT_IN = "kubevirt-scheduler/co-schedule"


HINT_ROWS = {
    "annotation of the VM": ({"annotations": {OPT_IN: "true"}}, None, "metadata.annotations"),
    "label of the VM": ({"labels": {OPT_IN: "true"}}, None, "metadata.labels"),
    "label of the template": ({}, {"labels": {OPT_IN: "true"}}, "spec.template.metadata.labels"),
}


@pytest.mark.parametrize(("own", "meta", "where"), HINT_ROWS.values(), ids=HINT_ROWS)
def test_a_misplaced_opt_in_has_a_hint(own: Any, meta: Any, where: str) -> None:
    """The hint says where the annotation is and where it belongs; the pod is not opted in."""
    found = derived(a_vm({}, meta, own=own))
    (hint,) = found.hints
    assert f'{OPT_IN}: "true" is in {where},' in hint
    assert "expected in spec.template.metadata.annotations" in hint
    assert OPT_IN not in found.pod["metadata"]["annotations"]


def test_an_opt_in_as_a_label_of_a_vmi_has_a_hint() -> None:
    """A VMI opts in with its annotations, not with its labels."""
    (hint,) = derived(a_vmi({}, meta={"labels": {OPT_IN: "true"}})).hints
    assert "is in metadata.labels," in hint
    assert "expected in metadata.annotations" in hint


def test_a_second_opt_in_needs_no_hint() -> None:
    """If the template opts in, an annotation of the VM does no harm."""
    assert derived(a_vm({}, {"annotations": {OPT_IN: "true"}}, own={"annotations": {OPT_IN: "false"}})).hints == []


def test_no_opt_in_at_all_needs_no_hint() -> None:
    """A VM without an opt-in is not a mistake."""
    assert derived(a_vm({})).hints == []


NOTE_ROWS: dict[str, tuple[dict[str, Any], str | None]] = {
    "CPU features": ({"domain": {"cpu": {"features": [{"name": "vmx"}]}}}, "CPU features"),
    "no CPU features": ({"domain": {"cpu": {"features": []}}}, None),
    "dedicated CPUs": ({"domain": {"cpu": {"dedicatedCpuPlacement": True}}}, "cpumanager"),
    "shared CPUs": ({"domain": {"cpu": {"dedicatedCpuPlacement": False}}}, None),
    "realtime": ({"domain": {"cpu": {"realtime": {}}}}, "realtime"),
    "Hyper-V": ({"domain": {"features": {"hyperv": {"vpindex": {}}}}}, "Hyper-V"),
    "launch security": ({"domain": {"launchSecurity": {"sev": {}}}}, "SEV"),
    "SR-IOV": ({"domain": {"devices": {"interfaces": [{"bridge": {}}, {"sriov": {}}]}}}, "SR-IOV"),
    "bridge": ({"domain": {"devices": {"interfaces": [{"bridge": {}}]}}}, None),
    "GPUs": ({"domain": {"devices": {"gpus": [{"name": "a"}]}}}, "GPUs"),
    "host devices": ({"domain": {"devices": {"hostDevices": [{"name": "a"}]}}}, "host devices"),
    "reservation": ({"domain": {"devices": {"disks": [{"lun": {"reservation": True}}]}}}, "persistent reservation"),
    "state claim": ({"virtualMachineState": {"claimName": "a"}}, "virtualMachineState"),
}


@pytest.mark.parametrize(("spec", "note"), NOTE_ROWS.values(), ids=NOTE_ROWS)
def test_what_is_not_derived_is_named(spec: dict[str, Any], note: str | None) -> None:
    """There is one note for each thing that KubeVirt would add, and the note on the cluster's settings."""
    first, *others = derived(a_vm(spec)).notes
    assert "KubeVirt resource" in first
    assert [text for text in others if not text.startswith("not derived: ")] == []
    assert len(others) == (note is not None)
    assert all((note or "") in text for text in others)


@pytest.mark.parametrize("field", ["instancetype", "preference"])
def test_what_a_machine_refers_to_is_not_expanded(field: str) -> None:
    """An instance type or a preference adds to the VMI; a note says that the pod lacks it."""
    assert any(field in note for note in derived(a_vm({}, vm_spec={field: {"name": "large"}})).notes)
    assert not any(field in note for note in derived(a_vm({}, vm_spec={field: None})).notes)


def test_hook_sidecars_may_bring_claims() -> None:
    """A hook sidecar can mount a claim that is not among the volumes."""
    found = derived(a_vm({}, {"annotations": {"hooks.kubevirt.io/hookSidecars": "[]"}}))
    assert any("hook sidecars" in note for note in found.notes)
