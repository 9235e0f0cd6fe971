"""explain of a VM: its claims, for which node the webhook would ask, and which rules of the VM are then checked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.drivers.explaining import a_vm, a_vmi, as_yaml, explained, run

FORETOLD = ("required", "preferred on", "fits", "feasible", "Affinity:")
BESIDE_ALL = "CPUs and memory"


def vm_with(domain: dict[str, Any] | None = None, *, vm: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A VM with the claim `root`; `domain` and `spec` of its instance, and `vm` of the VirtualMachine."""
    made = a_vm("root")
    made["spec"] |= vm or {}
    made["spec"]["template"]["spec"] |= {"domain": domain or {}, **spec}
    return made


RULES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "none": (vm_with(), []),
    "a GPU node of an instancetype": (
        vm_with(vm={"instancetype": {"name": "gpu.large"}, "preference": {"kind": "VirtualMachinePreference"}}),
        ["instancetype gpu.large", "preference (no name)"],
    ),
    "a node selector": (vm_with(nodeSelector={"gpu": "true", "a": "b"}), ["node selector a=b, gpu=true"]),
    "an architecture": (vm_with(architecture="arm64"), ["architecture"]),
    "dedicated CPUs": (vm_with({"cpu": {"dedicatedCpuPlacement": True}}), ["dedicated CPUs"]),
    "no dedicated CPUs": (vm_with({"cpu": {"dedicatedCpuPlacement": False}}), []),
    "a TPM that persists": (
        vm_with({"devices": {"tpm": {"persistent": True}}}),
        ["persistent TPM, whose claim the VM does not name"],
    ),
}


@pytest.mark.parametrize(("vm", "rules"), RULES.values(), ids=RULES)
def test_the_rules_of_a_stopped_vm_are_named_and_not_judged(vm: dict[str, Any], rules: list[str]) -> None:
    """The pod was guessed before, and then said to be `required` on a node that it could not run on."""
    vm["metadata"]["name"] = "stopped"
    found = explained(vm)
    start = found["vm"]["nextStart"]
    assert (start["nodes"], start["checks"]) == (["node-b"], [*rules, BESIDE_ALL])
    text = run(as_yaml(vm)).out
    said = "; ".join([*rules, BESIDE_ALL])
    assert f"would ask for node-b; kube-scheduler and the webhook's rules then check: {said}\n" in text
    assert not [word for word in FORETOLD if word in text.partition("Next start")[2]]


EXITS: dict[str, tuple[dict[str, Any], int]] = {
    "it would ask": (a_vm("root"), 0),
    "its share-manager would follow": (a_vm("stopped"), 0),
    "no share-manager": (a_vm("fast"), 1),
    "it does not ask": (a_vm("root", opt_in="false"), 1),
    "a wrong value": (a_vm("root", opt_in="yes"), 1),
    "an instance": (a_vmi("root"), 0),
}


@pytest.mark.parametrize(("vm", "code"), EXITS.values(), ids=EXITS)
def test_the_exit_code_says_whether_the_webhook_would_ask(vm: dict[str, Any], code: int) -> None:
    """0 yes, 1 no."""
    vm["metadata"]["name"] = "stopped"
    assert run(as_yaml(vm)).code == code


def test_control_characters_are_shown_not_sent() -> None:
    """A name from a file can't drive the terminal."""
    vm = a_vm("\x1b[31mred\n")
    out = run(json.dumps(vm)).out
    assert "\\x1b[31mred\\x0a" in out
    assert "\x1b[31mred" not in out
