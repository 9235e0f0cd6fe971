"""VMs, migrations and situations of `reunite`, each in one line: what is not named is the usual."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import replace

from webhook.core.api.meta import ObjectMeta
from webhook.core.api.node import Node, NodeSpec, Taint
from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.observe.vm_volumes import VMVolumeStatus
from webhook.core.opt_in import Mode
from webhook.core.reasons import Reason
from webhook.core.reunite.decide import VM, Plan, Situation, decide
from webhook.core.reunite.limits import KubeVirtLimits, ReuniteLimits
from webhook.core.reunite.migration import Migration
from webhook.core.reunite.not_yet import NotYet

NOW: Final = datetime(2026, 8, 5, 12, tzinfo=UTC).timestamp()  # a Wednesday
NEW_ENOUGH: Final = KubeVirtLimits(version=(1, 5))


def ago(seconds: float, now: float = NOW) -> str:
    """Return the time so many seconds before `now`, as the API server writes it."""
    return datetime.fromtimestamp(now - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def vm(name: str = "vm", node: str | None = "a", homes: Sequence[str] = ("b",), **changes: Any) -> VM:
    """Return a VM on `node` with a share-manager on each of `homes`; a change of a row's field goes into the row."""
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
    of_row = {key: changes.pop(key) for key in tuple(changes) if key in VMStatus.__struct_fields__}
    return VM(row=replace(row, **of_row), started=changes.pop("started", ago(1_000_000)), **changes)


def move(created: float, phase: str = "Succeeded", vmi: str = "vm", **changes: Any) -> Migration:
    """Return a migration that was created so many seconds before NOW, and ended at once."""
    changes.setdefault("name", f"{vmi}-{int(created)}")
    changes.setdefault("ended", ago(created) if phase in {"Succeeded", "Failed"} else None)
    return Migration(namespace="ns", uid="u", vmi=vmi, created=ago(created), phase=phase, **changes)


def node(name: str, *, ready_since: str | None = None, cordoned_since: str | None = None) -> Node:
    """Return a node that is Ready, and cordoned if there is a time."""
    taint = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule", time_added=cordoned_since)
    spec = NodeSpec(unschedulable=True, taints=[taint]) if cordoned_since else NodeSpec()
    return Node(metadata=ObjectMeta(name=name), spec=spec, ready_since=ready_since)


def situation(
    *parts: VM | Migration, now: float = NOW, kubevirt: KubeVirtLimits = NEW_ENOUGH, **limits: Any
) -> Situation:
    """Return the situation of these VMs and migrations, with these limits changed."""
    return Situation(
        now=now,
        vms=[each for each in parts if isinstance(each, VM)],
        migrations=[each for each in parts if isinstance(each, Migration)],
        kubevirt=kubevirt,
        limits=ReuniteLimits(**limits),
    )


def plan_of(at: Situation, refused: NotYet | None = None) -> tuple[Plan, list[VM]]:
    """Return what `decide` says if each VM that it asks about gets this answer, and the VMs that it asked about."""
    rules, asked = decide(at), []
    try:
        found = next(rules)
        while True:
            asked.append(found)
            found = rules.send(refused)
    except StopIteration as end:
        plan: Plan = end.value
        return plan, asked
