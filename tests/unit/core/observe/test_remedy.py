"""What a user can do about a VM: nothing is advised that is known not to work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import convert
from support.objects import builders
from support.objects.fleets import EARLY, LATER, disk, launcher, scheduled, served, the_row

from webhook.core.observe.remedy import REFUSED, restart_command, restart_without_owner, with_message
from webhook.core.observe.vm_status import State, VMStatus
from webhook.objects.kubevirt import VirtualMachine
from webhook.reunite.waits import Rule

Object = dict[str, Any]
CONFIGURATION = "mutatingwebhookconfiguration kubevirt-coschedule"
TAINT = "TaintNotTolerated: node node-b has the taint storage-only=true:NoSchedule, which the pod does not tolerate"
LABEL = "NodeSelectorMismatch: node node-a does not have the label storage=true of the pod's nodeSelector"
ROOM = "NoRoom: node node-b has too little of cpu"
EXCLUDED = builders.recorded("preferred", "node-b", because=TAINT)
EXCLUDES = builders.recorded("unchanged", because=LABEL, owner=builders.SHARE_MANAGER_UID)
ON_SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
CONFINED = [
    builders.persistent_volume_claim("root", volume_name="pv-root"),
    builders.persistent_volume(
        "pv-root", claim="root", handle="root", attributes={"shareManagerNodeSelector": "storage:true"}
    ),
]


def remedy(start: Mapping[str, str] | None, steering: Mapping[str, str] | None, volume: list[Object]) -> VMStatus:
    """The row of a VM with these decisions at its start and for its share-manager's pod."""
    manager, pod = served("root", "node-b", LATER if start is None else EARLY)
    if steering is not None:
        pod["metadata"]["annotations"] |= steering
    vm = launcher("root", nodeName="node-a", annotations=start, conditions=[scheduled(LATER)])
    return the_row(vm, objects=[*volume, manager, pod])


@pytest.mark.parametrize(
    ("start", "steering"),
    [
        pytest.param(EXCLUDED, None, id="by the VM's pod"),
        pytest.param(None, EXCLUDES, id="by the share-manager's pod"),
    ],
)
def test_a_node_that_excludes_the_vm_needs_a_stop_or_is_named(
    start: Mapping[str, str] | None, steering: Mapping[str, str] | None
) -> None:
    """After a stop Longhorn makes the share-manager again, when the VM has its node.

    longhorn/longhorn#7872: where a class confines share-managers, neither a restart nor a migration does it.
    """
    assert remedy(start, steering, disk("root")).remedy.startswith("stop the VM until Longhorn has stopped")
    found = remedy(start, steering, CONFINED)
    assert "shareManagerNodeSelector is storage:true, and a restart or a migration changes nothing" in found.remedy
    assert not found.command


@pytest.mark.parametrize("volume", [CONFINED, disk("root")], ids=["confined", "not confined"])
def test_what_can_pass_is_cured_by_a_migration(volume: list[Object]) -> None:
    """A full node does not exclude the VM for good."""
    found = remedy(builders.recorded("preferred", "node-b", because=ROOM), None, volume)
    assert (found.remedy[:21], bool(found.command)) == ("live-migrate the VM t", True)


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        pytest.param({"nodeSelector": {"disk": "ssd"}}, "does not have the label disk=ssd", id="its nodeSelector"),
        pytest.param(
            {"affinity": builders.node_affinity(required=[ON_SSD])}, "required node affinity", id="its own affinity"
        ),
    ],
)
def test_no_migration_is_advised_where_a_rule_of_the_vm_excludes_the_node(rules: Object, told: str) -> None:
    """KubeVirt would make a pod that no node takes."""
    started = builders.recorded("preferred", "node-b", because=ROOM)
    vm = launcher("root", nodeName="node-a", annotations=started, conditions=[scheduled(LATER)], **rules)
    found = the_row(vm, objects=[*disk("root"), *served("root", "node-b", EARLY), builders.node("node-b")])
    assert found.remedy.startswith("the VM can't run on the node of its share-manager: ")
    assert told in found.remedy
    assert not found.command


SAID = "NotPlaceable: node node-b has too little of memory"
WEB = the_row(launcher("root", nodeName="node-a"), objects=[*disk("root"), *served("root", "node-b")])
NOT_YET = "do not live-migrate the VM to node node-b before the reason that `reunite` gives has passed"


@pytest.mark.parametrize(
    ("said", "advised"),
    [
        pytest.param(f"at {LATER}: {SAID}", NOT_YET, id="no place"),
        pytest.param(f"{SAID}; --dry-run=client", NOT_YET, id="without a time"),
        pytest.param("NotMovable: it is paused", NOT_YET, id="the VM"),
        pytest.param("TooSoon: it started 5 min ago", "live-migrate the VM to node node-b, if", id="a wait"),
        pytest.param(
            f"MovedAway: somebody said {SAID}", "live-migrate the VM to node node-b, if", id="a wait that cites"
        ),
        pytest.param("", "live-migrate the VM to node node-b, if", id="nothing"),
    ],
)
def test_no_migration_is_advised_that_reunite_has_found_impossible(said: str, advised: str) -> None:
    """The page had both sentences, one below the other. The command still shows whether the reason has passed."""
    told = with_message(WEB, said)
    assert told.reunite == said
    assert told.remedy.startswith(f"see that the webhook runs (kubectl get {CONFIGURATION}), and {advised}")
    assert told.command == "reunite db01 -n vms -o yaml --now"
    assert with_message(told, said) == told


def test_the_codes_that_refuse_are_those_that_now_does_not_override() -> None:
    """The others are waits, the VM's own choice, or have a remedy of their own."""
    waits = {"TargetNamed", "Cancelled", "MovedAway", "NotCalm", "TooSoon", "Failed", "NotItsTurn"}
    assert {rule.value for rule in Rule} - set(REFUSED) == {"NotAsked", "SeveralNodes", *waits}


def test_a_vm_that_is_not_apart_has_no_message() -> None:
    """What `reunite` said an hour ago is of the VM's former place."""
    row = the_row(launcher("root", nodeName="node-b"), objects=[*disk("root"), *served("root", "node-b")])
    assert with_message(row, SAID) is row


def test_no_migration_is_advised_to_one_of_several_nodes() -> None:
    """`reunite` says SeveralNodes: from a third node a migration leads to one share-manager only."""
    objects = [*disk("root"), *disk("data"), *served("root", "node-b"), *served("data", "node-c")]
    found = the_row(launcher("root", "data", nodeName="node-a"), objects=objects)
    assert found.remedy.startswith("stop the VM until Longhorn has stopped its share-managers")
    assert not found.command


HELD = [
    pytest.param([builders.node("node-a")], False, "", id="Ready"),
    pytest.param([builders.node("node-a", cordoned=True)], False, "", id="cordoned"),
    pytest.param([builders.node("node-a", ready="Unknown")], False, "node node-a is not Ready", id="lost"),
    pytest.param([builders.node("node-a", ready=None)], False, "node node-a is not Ready", id="without a condition"),
    pytest.param([builders.node("node-a", ready="False")], True, "node node-a is not Ready", id="lost and terminating"),
    pytest.param([builders.node("node-a")], True, "is being deleted", id="terminating"),
    pytest.param([], False, "", id="not described"),
]


@pytest.mark.parametrize(("nodes", "deleting", "held"), HELD)
def test_a_vm_on_a_lost_node_can_be_moved_nowhere(nodes: list[Object], held: str, *, deleting: bool) -> None:
    """The remedy is to free it. Longhorn's state of the node does not count: KubeVirt does not ask Longhorn."""
    objects = [*disk("root"), *served("root", "node-b"), builders.node("node-b"), *nodes]
    found = the_row(launcher("root", nodeName="node-a", deleting=deleting), objects=objects)
    assert found.state is State.APART
    assert (found.held, held in found.remedy) == (bool(held), True)
    assert ("out-of-service" in found.remedy, bool(found.command)) == (bool(held), not held)


RESTART = "virtctl restart db01 -n vms"
DELETE = "kubectl delete virtualmachineinstance db01 -n vms"


@pytest.mark.parametrize(
    ("strategy", "command"),
    [
        *((each, RESTART) for each in ("Always", "RerunOnFailure", "Manual")),
        ("Once", f"{DELETE}; the VM's runStrategy is Once: KubeVirt refuses a restart, and recreates what is deleted"),
        ("Halted", "virtctl start db01 -n vms, once KubeVirt has stopped it: the VM's runStrategy is Halted"),
        (None, f"{RESTART}; if the VM's runStrategy is Once: {DELETE}"),
    ],
)
def test_a_restart_is_one_that_kubevirt_accepts(strategy: str | None, command: str) -> None:
    """By the VM's runStrategy. virtctl stop and start would leave another strategy than Once."""
    assert restart_command("db01", "vms", strategy) == command


@pytest.mark.parametrize(
    ("spec", "strategy"),
    [
        ({"runStrategy": "Once"}, "Once"),
        ({"running": True}, "Always"),
        ({"running": False}, "Halted"),
        ({"running": None, "runStrategy": "Manual"}, "Manual"),
        ({}, "Halted"),
    ],
)
def test_the_run_strategy_is_read_as_kubevirt_reads_it(spec: Object, strategy: str) -> None:
    """The older field `running` means Always or Halted."""
    assert convert({"metadata": {}, "spec": spec}, VirtualMachine).run_strategy == strategy


def test_without_a_virtual_machine_there_is_no_command() -> None:
    """KubeVirt restarts only VirtualMachines."""
    assert restart_without_owner("db01").startswith("no VirtualMachine owns db01, ")
