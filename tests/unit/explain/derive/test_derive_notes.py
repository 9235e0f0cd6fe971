"""derive_notes: what is told beside the pod."""

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
def test_an_opt_in_in_the_wrong_place_is_hinted_at(own: Any, meta: Any, where: str) -> None:
    """The hint says where it stands, where it belongs, and the pod is not opted in."""
    found = derived(a_vm({}, meta, own=own))
    (hint,) = found.hints
    assert f'{OPT_IN}: "true" is in {where},' in hint
    assert "expected in spec.template.metadata.annotations" in hint
    assert OPT_IN not in found.pod["metadata"]["annotations"]


def test_a_label_of_an_instance_is_hinted_at() -> None:
    """An instance's own annotations are the right place, its labels are not."""
    (hint,) = derived(a_vmi({}, meta={"labels": {OPT_IN: "true"}})).hints
    assert "is in metadata.labels," in hint
    assert "expected in metadata.annotations" in hint


def test_an_opt_in_in_both_places_needs_no_hint() -> None:
    """Where the template opts in, what stands on the VM beside it does no harm."""
    assert derived(a_vm({}, {"annotations": {OPT_IN: "true"}}, own={"annotations": {OPT_IN: "false"}})).hints == []


def test_no_opt_in_at_all_needs_no_hint() -> None:
    """Staying out is no mistake."""
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
    """Beside the note on the cluster's settings there is one for each thing that KubeVirt would add, and no other."""
    first, *others = derived(a_vm(spec)).notes
    assert "KubeVirt resource" in first
    assert [text for text in others if not text.startswith("not derived: ")] == []
    assert len(others) == (note is not None)
    assert all((note or "") in text for text in others)


@pytest.mark.parametrize("field", ["instancetype", "preference"])
def test_what_a_machine_refers_to_is_not_expanded(field: str) -> None:
    """An instance type or preference adds to the instance; a note says that it is not in the pod."""
    assert any(field in note for note in derived(a_vm({}, vm_spec={field: {"name": "large"}})).notes)
    assert not any(field in note for note in derived(a_vm({}, vm_spec={field: None})).notes)


def test_hook_sidecars_may_bring_claims() -> None:
    """A hook sidecar can mount a claim that the volumes do not tell of."""
    found = derived(a_vm({}, {"annotations": {"hooks.kubevirt.io/hookSidecars": "[]"}}))
    assert any("hook sidecars" in note for note in found.notes)
