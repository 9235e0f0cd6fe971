"""VMs, migrations and situations of `reunite`, each in one line: what is not named is the usual."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from webhook.core.api.meta import Condition, ObjectMeta
from webhook.core.api.node import Node, NodeSpec, NodeStatus, Taint
from webhook.core.api.virtual_machine import VMICondition, VMIStatus
from webhook.core.live_migration.kubevirt import KubeVirt, KubeVirtStatus
from webhook.core.live_migration.migration import (
    ANNOTATION_EVACUATION,
    ANNOTATION_WORKLOAD_UPDATE,
    LABEL_REUNITE,
    Migration,
    MigrationSpec,
    MigrationState,
    MigrationStatus,
    PhaseTransition,
    next_name,
)
from webhook.core.live_migration.vm import VM
from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.observe.vm_volumes import VMVolumeStatus
from webhook.core.opt_in import Mode
from webhook.core.reasons import Reason
from webhook.core.reunite.decide import MigrationDecisions, Situation
from webhook.core.reunite.limits import ReuniteLimits
from webhook.core.reunite.not_yet import NotYet

NOW: Final = datetime(2026, 8, 5, 12, tzinfo=UTC).timestamp()


def ago(seconds: float, now: float = NOW) -> str:
    """Return the time so many seconds before `now`, as the API server writes it."""
    return datetime.fromtimestamp(now - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def kubevirt(version: str = "v1.5.0", **status: Any) -> KubeVirt:
    """Return an installation of KubeVirt that does not change now."""
    status = {"phase": "Deployed", **status}
    return KubeVirt(metadata=ObjectMeta(name="kubevirt"), status=KubeVirtStatus(observed_version=version, **status))


def vm(name: str = "vm", node: str | None = "a", homes: Sequence[str] = ("b",), **changes: Any) -> VM:
    """Return a VM on `node` with a share-manager on each of `homes`.

    A change of a row's field goes into the row, one of a status's field into the status. `unmigratable` is a message.
    """
    why = Reason.SHARE_MANAGER_POD.why(pod="share-manager-v", node=node)
    volumes = tuple(
        VMVolumeStatus(
            claim=f"c-{i}", volume=f"v-{i}", node=home, state="running", together=home == node, since=None, why=why
        )
        for i, home in enumerate(homes)
    )
    row = VMStatus(
        namespace="ns",
        name=name,
        pod=f"virt-launcher-{name}",
        node=node,
        asked="true",
        mode=Mode.REQUIRED,
        decided=Decided.REQUIRED,
        pinned=True,
        only=None,
        migrating=False,
        volumes=volumes,
        state=State.APART if any(home != node for home in homes) else State.TOGETHER,
        why=why,
        since=ago(90_000),
    )
    of_vm = {key: changes.pop(key) for key in ("pod", "placement") if key in changes}
    of_row = {key: changes.pop(key) for key in tuple(changes) if key in VMStatus.__struct_fields__}
    if unmigratable := changes.pop("unmigratable", ""):
        changes["conditions"] = [VMICondition(type="LiveMigratable", status="False", message=unmigratable)]
    of_status = {key: changes.pop(key) for key in tuple(changes) if key in VMIStatus.__struct_fields__}
    status = VMIStatus(**{"phase": "Running", **of_status})
    return VM(
        row=replace(row, **of_row), started=changes.pop("started", ago(1_000_000)), status=status, **of_vm, **changes
    )


def move(
    created: float,
    phase: str = "Succeeded",
    vmi: str = "vm",
    *,
    name: str = "",
    ended: str | None = None,
    ours: bool = False,
    names_target: bool = False,
    evacuates: str | None = None,
    updates: bool = False,
    priority: str | None = None,
    source_node: str | None = None,
    target_node: str | None = None,
) -> Migration:
    """Return a migration that was created so many seconds before NOW, and ended at once."""
    annotations = {ANNOTATION_EVACUATION: evacuates, ANNOTATION_WORKLOAD_UPDATE: "" if updates else None}
    transitions = [PhaseTransition(phase=phase, phase_transition_timestamp=ended or ago(created))]
    return Migration(
        metadata=ObjectMeta(
            namespace="ns",
            name=name or f"{vmi}-{int(created)}",
            creation_timestamp=ago(created),
            labels={LABEL_REUNITE: "true"} if ours else None,
            annotations={key: value for key, value in annotations.items() if value is not None},
        ),
        spec=MigrationSpec(
            vmi_name=vmi, priority=priority, added_node_selector={"x": "y"} if names_target or ours else None
        ),
        status=MigrationStatus(
            phase=phase,
            phase_transition_timestamps=transitions,
            migration_state=MigrationState(source_node=source_node, target_node=target_node),
        ),
    )


def node(name: str, *, ready_since: str | None = None, cordoned_since: str | None = None, **taint: str) -> Node:
    """Return a node that is Ready, cordoned if there is a time, with this taint."""
    taints = [Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule", time_added=cordoned_since)]
    spec = NodeSpec(unschedulable=True, taints=taints) if cordoned_since else NodeSpec()
    if taint:
        spec = NodeSpec(taints=[Taint(**taint)])
    ready = Condition(type="Ready", status="True", last_transition_time=ready_since)
    return Node(metadata=ObjectMeta(name=name), spec=spec, status=NodeStatus(conditions=[ready]))


def situation(
    *parts: VM | Migration | Node, now: float = NOW, installed: KubeVirt | None = None, **limits: Any
) -> Situation:
    """Return the situation of these VMs, migrations and nodes, with these limits changed."""
    return Situation(
        now=now,
        vms=[each for each in parts if isinstance(each, VM)],
        migrations=[each for each in parts if isinstance(each, Migration)],
        kubevirt=installed or kubevirt(),
        limits=ReuniteLimits(**limits),
        nodes={each.metadata.name or "": each for each in parts if isinstance(each, Node)},
    )


class Creation(NamedTuple):
    """A migration that starts: of which VM, where to, and its name."""

    vm: str
    target: str
    name: str


class Planned(NamedTuple):
    """What one run does. `asked`: the VMs whose node was asked about."""

    creates: list[Creation]
    waiting: dict[tuple[str, str], NotYet]
    asked: list[str]


def plan_of(at: Situation, refused: NotYet | None = None, *, takes: bool = True) -> Planned:
    """Return what a run does if each node gives this answer. Without `takes` the API server refuses each migration."""
    decisions, planned = MigrationDecisions(at), Planned([], {}, [])
    for each in decisions.in_order():
        why = decisions.why_not(each)
        if not why:
            planned.asked.append(each.row.name)
            why = refused or decisions.why_no_turn(each)
        if why:
            planned.waiting[each.key] = why
            continue
        if takes:
            decisions.take(each)
        name = next_name(each.row.name, decisions.migrations_in(each.row.namespace))
        planned.creates.append(Creation(each.row.name, each.row.share_manager_nodes[0], name))
    return planned
