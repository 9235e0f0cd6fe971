"""The state of a world: the VMs, the replicas, and the events of the API server that not every watch has shown.

`Setting` says how large the world is, what may happen in it, and which assumptions hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from modelcheck.pods import NO_TERMS, Cluster, Happening, Shape, Show, ShowOther, Terms

ASKED: Final = "asked"
PENDING: Final = ""
REFUSED: Final = "refused"
GONE: Final = "gone"
NEVER: Final = -1
ELSEWHERE: Final = "full-0"
"""A node with places for every pod that no term keeps from it. No share-manager is there."""


class Assumptions(NamedTuple):
    """What webhook.core.placement.replica_share takes for granted, and what it does not say.

    Attributes:
        shown_first: every watch shows a pod, and the VirtualMachineInstance that owns it, before the pod is bound.
        stored_first: an answer becomes a pod before any pod is bound that the answer did not know of.
        in_order: an answer becomes a pod before an answer that was given with more knowledge.
        kept_in_time: an answer becomes a pod, and the replica's watch shows the pod, before the answer expires.
        stored_before_restart: the answers of a replica that ends are pods or refused before it is ready again.
        only_own_terms: a pod is bound to a node with a share-manager only if a term of the pod names the node.
    """

    shown_first: bool = True
    stored_first: bool = True
    in_order: bool = True
    kept_in_time: bool = True
    stored_before_restart: bool = True
    only_own_terms: bool = True


class Budget(NamedTuple):
    """How often something may happen."""

    vms: int
    lost: int = 0
    refused: int = 0
    repeated: int = 0
    restarts: int = 0
    ended: int = 0
    others: int = 0


class Setting(NamedTuple):
    """One world."""

    cluster: Cluster
    shapes: tuple[Shape, ...]
    budget: Budget
    assumptions: Assumptions = Assumptions()


class VM(NamedTuple):
    """A VM: what the webhook wrote into its pod, what the answer knew of, and when its pod was created."""

    shape: Shape
    phase: str
    terms: Terms = NO_TERMS
    knew: int = 0
    created: int = NEVER


class ReplicaAt(NamedTuple):
    """A replica, how many events its watch has shown, and its answers that are not stored yet."""

    seen: int
    number: int
    owes: tuple[int, ...] = ()


class State(NamedTuple):
    """All that there is. `floor`: what the best informed answer knew that is a pod; `log`: the events."""

    vms: tuple[VM, ...]
    log: tuple[Happening, ...]
    replicas: tuple[ReplicaAt, ...]
    budget: Budget
    floor: int = 0
    others: tuple[str, ...] = ()


def limits(vm: VM) -> tuple[str, ...]:
    """Return the nodes that the pod may run on; none for any node."""
    return vm.terms.required or vm.terms.shortlist


def named(vm: VM) -> tuple[str, ...]:
    """Return the nodes that a term of the pod names."""
    return (*limits(vm), *vm.terms.preferred)


def listed(state: State) -> Iterator[Happening]:
    """Return what a list at this moment shows."""
    for index, vm in enumerate(state.vms):
        if vm.phase not in (ASKED, REFUSED, GONE):
            yield Show(index, vm.shape, vm.terms, vm.phase)
    for number, node in enumerate(state.others):
        yield ShowOther(f"other-{number}", node)


def become(state: State, index: int, phase: str, event: Happening | None = None) -> State:
    """Return the state after the API server has stored a change of the pod."""
    vm = state.vms[index]._replace(phase=phase)
    if phase == PENDING:
        vm = vm._replace(created=len(state.log), knew=0)
    event = event or Show(index, vm.shape, vm.terms, phase)
    return with_vm(state._replace(log=(*state.log, event)), index, vm)


def with_vm(state: State, index: int, vm: VM) -> State:
    """Return the state with another state of one VM."""
    return state._replace(vms=(*state.vms[:index], vm, *state.vms[index + 1 :]))


def replaced(replicas: tuple[ReplicaAt, ...], place: int, now: ReplicaAt) -> tuple[ReplicaAt, ...]:
    """Return the replicas with another state of one."""
    return (*replicas[:place], now, *replicas[place + 1 :])


def without_debt(replicas: tuple[ReplicaAt, ...], index: int) -> tuple[ReplicaAt, ...]:
    """Return the replicas after the answer for this VM is stored, lost or refused."""
    return tuple(
        each._replace(owes=tuple(vm for vm in each.owes if vm != index)) if index in each.owes else each
        for each in replicas
    )
