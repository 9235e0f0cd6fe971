"""Which VMs are on the node of their share-manager: the VMStatus of each VM, and how many there are.

Metrics, `status`, the page and log lines show it. vm_state makes it. Times are RFC 3339 as the API server writes them,
and compare as text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_volumes import VMVolumeStatus
from webhook.core.opt_in import Mode


class State(StrEnum):
    """Where a VM is, compared with its share-managers: the worst first. The codes are stable, as metric labels."""

    STUCK = "stuck"
    NOT_RUNNING = "not-running"
    APART = "apart"
    UNKNOWN = "unknown"
    PENDING = "pending"
    FREE = "free"
    TOGETHER = "together"

    @property
    def meaning(self) -> str:
        """What the state says of a VM, for the documents."""
        return _MEANINGS[self]


TROUBLED: Final = (State.STUCK, State.NOT_RUNNING, State.APART)
STOPPED: Final = "stopped"
SEVERITY: Final = {state: rank for rank, state in enumerate((*State, STOPPED))}
COMPARED: Final = (State.TOGETHER, *TROUBLED, State.PENDING)
"""The states of the VMs that a percentage counts, as the Prometheus rule has them (monitoring/prometheus-rule.yaml).

A VM that is free has no share-manager that it could be with, and of an unknown one nobody knows.
"""
_MEANINGS: Final = {
    State.TOGETHER: "every share-manager that is on a node is on the VM's. Only disks of the VM's own count: no claim "
    "whose volume another VM, pod or PersistentVolume uses, no CD-ROM, and not KubeVirt's own claim (TPM, EFI)",
    State.APART: "the share-manager of one or more of the VM's own disks is on another node than the VM",
    State.STUCK: "the VM's pod may run only on nodes that its affinity names (the webhook's or its own), and "
    "kube-scheduler reports that it fits none",
    State.NOT_RUNNING: "the VM's pod has had a node for ten minutes or longer, and is still Pending: a container waits "
    "for a volume, an image or the kubelet",
    State.PENDING: "the VM, or a share-manager that Longhorn is creating, is not on a node yet",
    State.FREE: "the VM is on a node, and there is no pod of a share-manager that it could be with: none runs, "
    "whatever the ShareManager says, or its volumes need none",
    State.UNKNOWN: "an object that decides the state could not be read, or the VM has an instance and no pod",
}


class NextStart(Struct, rename="camel", frozen=True, kw_only=True):
    """What the webhook would ask for if the VM started now and asked for co-scheduling.

    Attributes:
        nodes: the nodes for which it would ask, best first.
        reason: the code of the evidence, or of what holds the VM.
        because: the same as a sentence.
        followed: whether a share-manager would be created after the VM has its node, and the webhook would steer it
            there.
        held: whether the VM would gain nothing whatever its pod is.
        unread: what of these nodes could not be read.
        checks: the VM's own rules, by which kube-scheduler and the webhook then check the nodes.
        alone: whether nobody else uses a volume that has a share-manager; None if that is not known.
    """

    nodes: Sequence[str]
    reason: str
    because: str
    followed: bool
    held: bool = False
    unread: Sequence[str] = ()
    checks: Sequence[str] = ()
    alone: bool | None = None

    @property
    def gains(self) -> bool:
        """Whether the webhook would ask for a node on which VMs start, or the share-manager would follow."""
        return self.followed or bool(self.nodes and not self.held)

    @property
    def sentence(self) -> str:
        """What would happen, in words."""
        if self.held:
            return f"would gain nothing now: {self.because}"
        if self.followed:
            return "would ask for no node; a new share-manager would be steered to the node of the VM"
        if not self.nodes:
            return f"would ask for no node: {self.because}"
        own = "; ".join(self.checks) or "the VM's objects name no rule of their own"
        return f"would ask for {', '.join(self.nodes)}; kube-scheduler and the webhook's rules then check: {own}"


class Shows(Protocol):
    """How a user names the cluster (webhook.invocation)."""

    def line(self, arguments: str) -> str:
        """Return the command line that runs this program with these arguments."""

    def addressed(self, text: str) -> str:
        """Return the text with each command of kubectl and virtctl in it for the same cluster."""


class VMStatus(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """One VM, by the pod in which it runs or will run: one struct for text, JSON, page, metrics and `reunite`.

    Attributes:
        kind: the type by which `explain` takes the name: vmi for an instance that certainly has no VirtualMachine.
        state: STOPPED for a VM without a pod; of a VM that does not ask as if it asked.
        since: since when the VM is in this state, as far as the objects show it.
        only_node: the one node on which the waiting pod may start.
        asked: the value that asks for co-scheduling, or does not; empty for none.
        asked_by: whose value that is: vm (its annotation), namespace (its label) or cluster (the setting).
        mode: what the value means in this cluster; None for a VM that does not ask.
        not_asked: why the VM does not ask; empty if it asks.
        decided: what the webhook did when the pod was created.
        pinned: whether the webhook required nodes, or the pod waits for nodes that its affinity names.
        migrating: whether another pod of the VM is on a node, too.
        reason: for a VM that is apart the code of what made it so, else of what shows the state.
        because: the same as a sentence.
        held: whether KubeVirt can move a VM that is apart nowhere.
        remedy: what to do about a VM that is apart, stuck or not running; empty for nothing.
        command: the arguments with which this program prints how; the whole command line where it is shown.
        reunite: what that program last said of a VM that is apart; empty for nothing.
        hints: what is wrong with the VM, or not known of it.
        next_start: what the webhook would ask for at the next start; None where that is not looked at.
        needs_share_manager: False if nobody else uses its volumes and virtiofs none, so that block volumes of a
            migratable StorageClass would do; None if that is not known.
        change: the command that opts the VM in; empty for none.
        no_change: why there is none; empty if there is one, and for a VM that asks.
    """

    namespace: str
    name: str
    kind: Literal["vm", "vmi"] = "vm"
    state: State | Literal["stopped"]
    since: str | None = None
    node: str | None = None
    only_node: str | None = None
    pod: str | None = None
    asked: str = ""
    asked_by: str = ""
    mode: Mode | None = None
    not_asked: str = ""
    decided: Decided | None = None
    pinned: bool = False
    migrating: bool = False
    reason: str = ""
    because: str = ""
    held: bool = False
    remedy: str = ""
    command: str = ""
    reunite: str = ""
    volumes: Sequence[VMVolumeStatus] = ()
    hints: Sequence[str] = ()
    next_start: NextStart | None = None
    needs_share_manager: bool | None = None
    change: str = ""
    no_change: str = ""

    @property
    def why(self) -> str:
        """Code and sentence of the reason."""
        return f"{self.reason}: {self.because}"

    @property
    def to_do(self) -> str:
        """The remedy with the command that prints how; empty for nothing."""
        return f"{self.remedy}: {self.command}" if self.command else self.remedy

    def shown_by(self, invocation: Shows) -> VMStatus:
        """Return it with all commands for the cluster in which the VM is."""
        if not (self.command or self.remedy or self.change):
            return self
        command = invocation.line(self.command) if self.command else ""
        remedy, change = invocation.addressed(self.remedy), invocation.addressed(self.change)
        return replace(self, command=command, remedy=remedy, change=change)

    @property
    def share_manager_nodes(self) -> tuple[str, ...]:
        """The nodes of the share-managers that the VM's node is compared with, by name."""
        return tuple(sorted({volume.node for volume in self.volumes if volume.node and volume.together is not None}))


def count_causes(statuses: Iterable[VMStatus]) -> dict[str, int]:
    """Return the number of VMs in trouble by each cause, the most frequent first."""
    counts = Counter(each.reason for each in statuses if each.state in TROUBLED)
    return dict(sorted(counts.items(), key=lambda counted: (-counted[1], counted[0])))


def percent_together(counts: Mapping[str, int]) -> int | None:
    """Return how many percent of the VMs that can be compared are together; None if there is none.

    100 means all of them.
    """
    compared = sum(counts[state] for state in COMPARED)
    return 100 * counts[State.TOGETHER] // compared if compared else None


def count_states(statuses: Iterable[VMStatus]) -> dict[str, int]:
    """Return the number of VMs in each state, with 0 for a state that no VM is in."""
    counts: dict[str, int] = dict.fromkeys(State, 0)
    for each in statuses:
        counts[each.state] += 1
    return counts
