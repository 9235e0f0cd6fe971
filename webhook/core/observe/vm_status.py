"""Which VMs are on the node of their share-manager: the VMStatus of each VM that asks for it, and how many there are.

Metrics, `status`, the page and log lines show it. vm_state makes it. Times are RFC 3339 as the API server writes them,
and compare as text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from webhook.core.causes import short_cause
from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_volumes import VMVolumeStatus
from webhook.core.opt_in import Mode, OptedInBy
from webhook.core.reasons import Why


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
SEVERITY: Final = {state: rank for rank, state in enumerate(State)}
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
    State.UNKNOWN: "an object that decides the state could not be read",
}


class Remedy(Struct, frozen=True, gc=False):
    """What the user can do about a VM; this program prints how if it gets the `arguments`. They can be empty."""

    sentence: str
    arguments: str = ""


class VMStatus(Struct, frozen=True, kw_only=True, gc=False):
    """One VM that asks for co-scheduling, by the pod in which it runs or will run.

    Attributes:
        asked: the value that opts the VM in: true, required or preferred; `mode` is its meaning in this cluster.
        by: whose value that is: the VM's, its Namespace's or the cluster's.
        decided: what the webhook did when the pod was created.
        pinned: whether the webhook required nodes, or the pod waits for nodes that its affinity names: one node,
            which is `only`, or a short list.
        migrating: whether another pod of the VM is on a node, too.
        why: for a VM that is apart what made it so, else what shows the state.
        since: since when the VM is in this state, as far as the objects show it.
        held: why KubeVirt can move a VM that is apart nowhere; None if no reason is known.
        remedy: what the user can do about a VM that is apart, stuck or not running; None for another VM.
        said_by_reunite: what `reunite` last said of a VM that is apart; empty where that is not read.
        not_asked: why the VM does not ask; it is then shown as if it asked. None if it asks.
    """

    namespace: str
    name: str
    pod: str
    node: str | None
    asked: str
    mode: Mode
    decided: Decided
    pinned: bool
    only: str | None
    migrating: bool
    volumes: tuple[VMVolumeStatus, ...]
    state: State
    why: Why
    since: str | None
    held: Why | None = None
    remedy: Remedy | None = None
    said_by_reunite: str = ""
    by: OptedInBy = OptedInBy.VM
    not_asked: Why | None = None

    @property
    def share_manager_nodes(self) -> tuple[str, ...]:
        """The nodes of the share-managers that the VM's node is compared with, by name."""
        return tuple(sorted({volume.node for volume in self.volumes if volume.node and volume.together is not None}))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that the VM is on or is pinned to, and those of its share-managers; a name can come twice."""
        return tuple(filter(None, (self.node, self.only, *(volume.node for volume in self.volumes))))


def count_causes(statuses: Iterable[VMStatus]) -> dict[str, int]:
    """Return the number of VMs in trouble by each cause, the most frequent first."""
    counts = Counter(short_cause(each.why) for each in statuses if each.state in TROUBLED)
    return dict(sorted(counts.items(), key=lambda counted: (-counted[1], counted[0])))


def percent_together(counts: Mapping[State, int]) -> int | None:
    """Return how many percent of the VMs that can be compared are together; None if there is none.

    100 means all of them.
    """
    compared = sum(counts[state] for state in COMPARED)
    return 100 * counts[State.TOGETHER] // compared if compared else None


def count_states(statuses: Iterable[VMStatus]) -> dict[State, int]:
    """Return the number of VMs in each state, with 0 for a state that no VM is in."""
    counts = dict.fromkeys(State, 0)
    for each in statuses:
        counts[each.state] += 1
    return counts
