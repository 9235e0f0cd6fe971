"""VMs, migrations and situations of `reunite`, each in one line: what is not named is the usual."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace
from support.drivers.command_lines import values

from webhook import cli
from webhook.core.api.kubevirt import ANNOTATION_MIGRATION, HOSTNAME, LABEL_MIGRATION_JOB_UID, VMI_KIND, MigrationState
from webhook.core.api.meta import Condition, ObjectMeta
from webhook.core.api.migration import (
    ANNOTATION_EVACUATION,
    ANNOTATION_WORKLOAD_UPDATE,
    LABEL_REUNITE,
    KubeVirt,
    KubeVirtStatus,
    Migration,
    MigrationSpec,
    MigrationStatus,
    PhaseTransition,
    next_name,
)
from webhook.core.api.node import Node, NodeStatus
from webhook.core.api.pod import Pod, PodSpec
from webhook.core.api.virtual_machine import VMIStatus
from webhook.core.observe.events import InvolvedObject, ReuniteEvent
from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.observe.vm_volumes import VMVolumeStatus
from webhook.core.opt_in import Mode
from webhook.core.reasons import Reason
from webhook.objects.kubevirt import (
    VirtualMachine,
    VirtualMachineInstance,
    VirtualMachineSpec,
    VirtualMachineStatus,
    VMISpec,
)
from webhook.reunite.decide import MigrationDecisions
from webhook.reunite.settings import ReuniteSettings
from webhook.reunite.vm import VM, with_past
from webhook.reunite.waits import NotYet

DEFAULTS: Final = values(cli.COMMANDS, "reunite") | {"all_namespaces": True}
"""As the CronJob has them."""
NOW: Final = datetime(2026, 8, 5, 12, tzinfo=UTC).timestamp()


def ago(seconds: float, now: float = NOW) -> str:
    """Return the time so many seconds before `now`, as the API server writes it."""
    return datetime.fromtimestamp(now - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def kubevirt(version: str = "v1.6.0", **status: Any) -> KubeVirt:
    """Return an installation of KubeVirt that does not change now."""
    status = {"phase": "Deployed", **status}
    return KubeVirt(metadata=ObjectMeta(name="kubevirt"), status=KubeVirtStatus(observed_version=version, **status))


def vm(name: str = "vm", node: str | None = "a", homes: Sequence[str] = ("b",), **changes: Any) -> VM:
    """Return a VM on `node` with a share-manager on each of `homes`.

    A change of a row's field goes into the row, one of a status's field into the status. `unmigratable` is a message.
    """
    code, because = Reason.SHARE_MANAGER_POD.code, "for a test"
    volumes = tuple(
        VMVolumeStatus(
            claim=f"c-{i}",
            volume=f"v-{i}",
            node=home,
            share_manager="running",
            together=home == node,
            since=None,
            reason=code,
            because=because,
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
        migrating=False,
        volumes=volumes,
        state=State.APART if any(home != node for home in homes) else State.TOGETHER,
        reason=code,
        because=because,
        since=ago(90_000),
    )
    of_vm = {key: changes.pop(key) for key in ("pod", "deleted") if key in changes}
    of_row = {key: changes.pop(key) for key in tuple(changes) if key in VMStatus.__struct_fields__}
    of_vm |= _machine(changes.pop("owner", None), changes.pop("run_strategy", None), changes.pop("copying", {}))
    if unmigratable := changes.pop("unmigratable", ""):
        changes["conditions"] = [Condition(type="LiveMigratable", status="False", message=unmigratable)]
    of_status = {key: changes.pop(key) for key in tuple(changes) if key in VMIStatus.__struct_fields__}
    answers = dict.fromkeys([LABEL_REUNITE], changes.pop("answer", None))
    meta = ObjectMeta(
        name=name,
        uid=f"uid-{name}",
        creation_timestamp=changes.pop("started", ago(1_000_000)),
        annotations={key: value for key, value in answers.items() if value is not None},
    )
    known, spec = changes.pop("known", True), VMISpec(**changes)
    vmi = VirtualMachineInstance(metadata=meta, spec=spec, status=VMIStatus(**{"phase": "Running", **of_status}))
    return VM(row=replace(row, **of_row), vmi=vmi if known else None, **of_vm)


def _machine(owner: str | None, run_strategy: str | None, copying: dict[str, str]) -> dict[str, Any]:
    """The VirtualMachine of a VM. `copying` are fields of its status."""
    if not owner and not copying:
        return {}
    status = VirtualMachineStatus(**copying)
    spec = VirtualMachineSpec(run_strategy=run_strategy)
    return {"owner": owner, "vm": VirtualMachine(metadata=ObjectMeta(name=owner), spec=spec, status=status)}


def target(by: str = "kubevirt-migrate-vm-x", *, uid: str = "m", host: str | None = None) -> Pod:
    """Return the pod that the migration of this name made."""
    meta = ObjectMeta(
        name="virt-launcher-vm", labels={LABEL_MIGRATION_JOB_UID: uid}, annotations={ANNOTATION_MIGRATION: by}
    )
    return Pod(metadata=meta, spec=PodSpec(node_selector={HOSTNAME: host} if host else None))


def started(seconds: float, uid: str = "uid-vm", namespace: str = "ns", **changes: Any) -> ReuniteEvent:
    """Return the Event that `reunite` wrote when it created a migration."""
    return ReuniteEvent(
        metadata=ObjectMeta(name=f"e-{seconds}", namespace=namespace, creation_timestamp=ago(seconds)),
        involved_object=InvolvedObject(kind=VMI_KIND, namespace=namespace, name="vm", uid=uid),
        **{"reason": "ReuniteStarted", "message": "migration vm-reunite-1: from node a to node b", **changes},
    )


def move(
    created: float,
    phase: str = "Succeeded",
    vmi: str = "vm",
    *,
    name: str = "",
    ended: str | None = None,
    ours: bool = False,
    uid: str = "",
    evacuates: str | None = None,
    updates: bool = False,
    priority: str | None = None,
    source_node: str | None = None,
    target_node: str | None = None,
    failure: str | None = None,
) -> Migration:
    """Return a migration that was created so many seconds before NOW, and ended at once."""
    annotations = {ANNOTATION_EVACUATION: evacuates, ANNOTATION_WORKLOAD_UPDATE: "" if updates else None}
    transitions = [PhaseTransition(phase=phase, phase_transition_timestamp=ended or ago(created))]
    return Migration(
        metadata=ObjectMeta(
            namespace="ns",
            name=name or f"{vmi}-{int(created)}",
            uid=uid or None,
            creation_timestamp=ago(created),
            labels={LABEL_REUNITE: "true"} if ours else None,
            annotations={key: value for key, value in annotations.items() if value is not None},
        ),
        spec=MigrationSpec(vmi_name=vmi, priority=priority),
        status=MigrationStatus(
            phase=phase,
            phase_transition_timestamps=transitions,
            migration_state=MigrationState(source_node=source_node, target_node=target_node, failure_reason=failure),
        ),
    )


def node(name: str, *, ready_since: str | None = None) -> Node:
    """Return a node that is Ready."""
    ready = Condition(type="Ready", status="True", last_transition_time=ready_since)
    return Node(metadata=ObjectMeta(name=name), status=NodeStatus(conditions=[ready]))


class Situation(Struct, frozen=True, kw_only=True):
    """A cluster at one moment, as `with_past` and `MigrationDecisions` take it."""

    now: float
    vms: Sequence[VM]
    migrations: Sequence[Migration]
    events: Sequence[ReuniteEvent]
    kubevirt: KubeVirt | None
    nodes: dict[str, Node]
    oldest_on: dict[str, str]
    limits: ReuniteSettings


def situation(
    *parts: VM | Migration | Node | ReuniteEvent,
    now: float = NOW,
    installed: KubeVirt | None = None,
    oldest_on: dict[str, str] | None = None,
    **limits: Any,
) -> Situation:
    """Return the situation of these VMs, migrations, nodes and Events, with these limits changed."""
    return Situation(
        now=now,
        vms=[each for each in parts if isinstance(each, VM)],
        migrations=[each for each in parts if isinstance(each, Migration)],
        events=[each for each in parts if isinstance(each, ReuniteEvent)],
        kubevirt=installed or kubevirt(),
        oldest_on=oldest_on or {},
        limits=ReuniteSettings(**{**DEFAULTS, **limits}),
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
    vms = with_past(at.vms, at.migrations, at.events, at.nodes, at.oldest_on)
    decisions, planned = MigrationDecisions(vms, at.migrations, at.kubevirt, at.limits, at.now), Planned([], {}, [])
    for each in decisions.in_order():
        why = decisions.why_not(each)
        if not why:
            planned.asked.append(each.row.name)
            why = refused or decisions.why_not_now(each) or decisions.why_no_turn(each)
        if why:
            planned.waiting[each.key] = why
            continue
        if takes:
            decisions.take(each)
        planned.creates.append(Creation(each.row.name, each.home, next_name(each.row.name, each.names)))
    return planned
