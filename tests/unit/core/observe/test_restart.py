"""The command that starts a VM anew is one that KubeVirt takes for the VM's runStrategy."""

from __future__ import annotations

from typing import Any, Final

import pytest

from webhook.core.observe import restart

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
    """The older field says Always or Halted."""
    assert restart.run_strategy(spec) == strategy


@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure", "Manual"])
def test_where_kubevirt_restarts_a_vm_that_is_offered(strategy: str) -> None:
    """And nothing else is said."""
    assert restart.restart_command("db01", "vms", strategy) == RESTART


@pytest.mark.parametrize("strategy", ["Once", "Halted"])
def test_no_restart_is_offered_where_kubevirt_refuses_it(strategy: str) -> None:
    """Once has another way, and Halted is on its way down."""
    assert "virtctl restart" not in restart.restart_command("db01", "vms", strategy)


def test_a_vm_that_runs_once_is_made_anew_when_its_instance_is_deleted() -> None:
    """A stop and a start would leave it with another runStrategy."""
    assert restart.restart_command("db01", "vms", "Once").startswith(f"{DELETE}; ")


def test_a_halted_vm_is_started_when_it_is_down() -> None:
    """KubeVirt refuses to start a VM that runs."""
    assert restart.restart_command("db01", "vms", "Halted").startswith(
        "virtctl start db01 -n vms, once KubeVirt has stopped "
    )


def test_where_the_run_strategy_is_not_known_both_ways_are_told() -> None:
    """With what each of them is for."""
    assert restart.restart_command("db01", "vms", None) == f"{RESTART}; where the VM's runStrategy is Once: {DELETE}"


def test_without_a_virtual_machine_there_is_no_command() -> None:
    """KubeVirt restarts VirtualMachines."""
    assert restart.restart_without_owner("db01").startswith("no VirtualMachine owns db01, ")
