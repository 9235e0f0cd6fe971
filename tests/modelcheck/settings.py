"""The worlds that are searched: those in which no VM may be stranded, and those in which the bound is another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from modelcheck.happenings import Cluster
from modelcheck.pods import Shape
from modelcheck.state import Assumptions, Budget, Setting

N1: Final = Shape(("n1",))
N2: Final = Shape(("n2",))
WISH: Final = Shape(("n1",), "preferred")
EITHER: Final = Shape(("n1", "n2"))
_FAULTY: Final = 3  # VMs where more than the order of steps is free: with 4 a search takes longer than some minutes


def nodes(places: int, replicas: int) -> Cluster:
    """Return two nodes with this number of places each."""
    return Cluster((("n1", places), ("n2", places)), replicas)


def as_stated(vms: int) -> Mapping[str, Setting]:
    """Return worlds in which all assumptions hold and all pods have one size: no VM may be stranded.

    `vms` is the number of VMs of the worlds in which nothing goes wrong.
    """
    three, two = nodes(3, 3), nodes(2, 2)
    return {
        "3 replicas": Setting(three, (N1, N2), Budget(vms)),
        "3 replicas; answers lost, pods refused, a replica restarts, a VM ends": Setting(
            three, (N1, N2), Budget(_FAULTY, lost=1, refused=1, restarts=1, ended=1)
        ),
        "3 replicas; pods refused and asked about again": Setting(
            three, (N1, N2), Budget(_FAULTY, refused=1, repeated=1)
        ),
        "2 replicas": Setting(two, (N1, N2), Budget(vms)),
        "2 replicas; answers lost, pods refused, a replica restarts, a VM ends": Setting(
            two, (N1, N2), Budget(_FAULTY, lost=1, refused=1, restarts=1, ended=1)
        ),
        "2 replicas; VMs that only prefer a node, or may run on either": Setting(
            two, (N1, WISH, EITHER, N2), Budget(_FAULTY)
        ),
        "2 replicas, 4 places, all VMs on one node": Setting(nodes(4, 2), (N1,), Budget(vms + 1)),
        "2 replicas, 3 places, all VMs on one node": Setting(nodes(3, 2), (N1,), Budget(vms)),
        "1 replica, 1 place": Setting(nodes(1, 1), (N1, N2), Budget(_FAULTY, lost=1, restarts=1, ended=1)),
    }


def with_others(vms: int) -> Mapping[str, Setting]:
    """Return worlds in which pods without a term for a node take places there: each may cost one VM its place."""
    free = Assumptions(only_own_terms=False)
    return {
        "3 replicas, 1 other pod": Setting(nodes(3, 3), (N1, N2), Budget(vms, others=1)),
        "3 replicas, 2 other pods": Setting(nodes(3, 3), (N1, N2), Budget(vms, others=2)),
        "2 replicas, VMs without a term go anywhere": Setting(
            nodes(2, 2), (N1, N2), Budget(vms, lost=1, ended=1), free
        ),
    }


def with_one_assumption_broken(vms: int) -> Mapping[str, Setting]:
    """Return worlds in which one assumption does not hold."""
    two, holds = nodes(2, 2), Assumptions()
    budgets = {
        "kept_in_time": Budget(vms, refused=1, repeated=1),
        "stored_before_restart": Budget(vms, restarts=1),
        "only_own_terms": Budget(vms, ended=1),
    }
    return {
        name: Setting(two, (N1, N2), budgets.get(name, Budget(vms)), holds._replace(**{name: False}))
        for name in Assumptions._fields
    }
