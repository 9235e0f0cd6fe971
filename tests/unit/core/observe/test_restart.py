"""The command that restarts a VM is one that KubeVirt accepts for the VM's runStrategy."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec import convert

from webhook.core.observe import remedy
from webhook.objects.api.kubevirt import VirtualMachine

RESTART: Final = "virtctl restart db01 -n vms"
DELETE: Final = "kubectl delete virtualmachineinstance db01 -n vms"


@pytest.mark.parametrize(
    ("spec", "strategy"),
    [
        pytest.param({"runStrategy": "Once"}, "Once", id="as it is said"),
        pytest.param({"running": True}, "Always", id="running"),
        pytest.param({"running": False}, "Halted", id="not running"),
        pytest.param({"running": None, "runStrategy": "Manual"}, "Manual", id="running is null"),
        pytest.param({}, "Halted", id="nothing is said"),
    ],
)
def test_the_run_strategy_is_read_as_kubevirt_reads_it(spec: dict[str, Any], strategy: str) -> None:
    """The older field `running` means Always or Halted."""
    assert convert({"metadata": {}, "spec": spec}, VirtualMachine).run_strategy == strategy


@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure", "Manual"])
def test_a_vm_that_kubevirt_restarts_gets_that_command(strategy: str) -> None:
    """And no other text."""
    assert remedy.restart_command("db01", "vms", strategy) == RESTART


@pytest.mark.parametrize("strategy", ["Once", "Halted"])
def test_no_restart_is_offered_if_kubevirt_refuses_it(strategy: str) -> None:
    """A VM with Once has another command, and a Halted VM is stopping already."""
    assert "virtctl restart" not in remedy.restart_command("db01", "vms", strategy)


def test_a_vm_that_runs_once_is_recreated_by_deleting_its_vmi() -> None:
    """The commands virtctl stop and start would leave another runStrategy."""
    assert remedy.restart_command("db01", "vms", "Once").startswith(f"{DELETE}; ")


def test_a_halted_vm_is_started_after_it_has_stopped() -> None:
    """KubeVirt refuses to start a VM that runs."""
    assert remedy.restart_command("db01", "vms", "Halted").startswith(
        "virtctl start db01 -n vms, once KubeVirt has stopped "
    )


def test_without_the_run_strategy_the_text_has_both_commands() -> None:
    """With the runStrategy for which each is right."""
    assert remedy.restart_command("db01", "vms", None) == f"{RESTART}; if the VM's runStrategy is Once: {DELETE}"


def test_without_a_virtual_machine_there_is_no_command() -> None:
    """KubeVirt restarts only VirtualMachines."""
    assert remedy.restart_without_owner("db01").startswith("no VirtualMachine owns db01, ")
