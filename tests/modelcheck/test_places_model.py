"""Every state of the protocol of places: replicas, watches, kube-scheduler, and whatever goes wrong between them.

`tests/modelcheck` has the worlds and the search; decisions and caches are the real ones. `make soak` has more VMs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
from modelcheck.faults import FAULTS
from modelcheck.pods import Cluster, Shape
from modelcheck.search import Trace, search
from modelcheck.state import Assumptions, Budget, Setting
from support.sizes import size

VMS: Final = size("MODEL_VMS")
ANYWHERE: Final = Assumptions(only_own_terms=False)
N1: Final = Shape(("n1",))
N2: Final = Shape(("n2",))
WISH: Final = Shape(("n1",), "preferred")
EITHER: Final = Shape(("n1", "n2"))
_FAULTY: Final = 3  # VMs where more than the order of steps is free: with 4 a search takes longer than some minutes


def nodes(places: int, replicas: int) -> Cluster:
    """Return two nodes with this number of places each."""
    return Cluster((("n1", places), ("n2", places)), replicas)


THREE: Final = nodes(3, 3)
TWO: Final = nodes(2, 2)
AS_STATED: Final = {
    "3 replicas": Setting(THREE, (N1, N2), Budget(VMS)),
    "3 replicas; answers lost, pods refused, a replica restarts, a VM ends": Setting(
        THREE, (N1, N2), Budget(_FAULTY, lost=1, refused=1, restarts=1, ended=1)
    ),
    "3 replicas; pods refused and asked about again": Setting(THREE, (N1, N2), Budget(_FAULTY, refused=1, repeated=1)),
    "2 replicas": Setting(TWO, (N1, N2), Budget(VMS)),
    "2 replicas; answers lost, pods refused, a replica restarts, a VM ends": Setting(
        TWO, (N1, N2), Budget(_FAULTY, lost=1, refused=1, restarts=1, ended=1)
    ),
    "2 replicas; VMs that only prefer a node, or may run on either": Setting(
        TWO, (N1, WISH, EITHER, N2), Budget(_FAULTY)
    ),
    "2 replicas, 4 places, all VMs on one node": Setting(nodes(4, 2), (N1,), Budget(VMS + 1)),
    "2 replicas, 3 places, all VMs on one node": Setting(nodes(3, 2), (N1,), Budget(VMS)),
    "1 replica, 1 place": Setting(nodes(1, 1), (N1, N2), Budget(_FAULTY, lost=1, restarts=1, ended=1)),
}
"""Worlds in which all assumptions hold and all pods have one size: no VM may be stranded."""
WITH_OTHERS: Final = {
    "3 replicas, 1 other pod": Setting(THREE, (N1, N2), Budget(_FAULTY, others=1)),
    "3 replicas, 2 other pods": Setting(THREE, (N1, N2), Budget(_FAULTY, others=2)),
    "2 replicas, VMs without a term go anywhere": Setting(TWO, (N1, N2), Budget(_FAULTY, lost=1, ended=1), ANYWHERE),
}
"""Worlds in which pods without a term for a node take places there: each may cost one VM its place."""
BUDGETS: Final = {
    "kept_in_time": Budget(_FAULTY, refused=1, repeated=1),
    "stored_before_restart": Budget(_FAULTY, restarts=1),
    "only_own_terms": Budget(_FAULTY, ended=1),
}
BROKEN: Final = {
    name: Setting(TWO, (N1, N2), BUDGETS.get(name, Budget(_FAULTY)), Assumptions()._replace(**{name: False}))
    for name in Assumptions._fields
}
"""Worlds in which one assumption does not hold."""
FOUND_IN: Final[Mapping[str, Setting]] = {
    "a share is not divided by the replicas": Setting(TWO, (N1, N2), Budget(3)),
    "an answer is not assumed": Setting(TWO, (N1, N2), Budget(3)),
    "pods on the way to the node are not counted as such": Setting(nodes(2, 1), (N1, WISH), Budget(4)),
    "a pinned pod counts only until kube-scheduler has evaluated it": Setting(
        nodes(1, 1), (N1,), Budget(3, lost=1, ended=1), ANYWHERE
    ),
}


def tell(trace: Trace) -> str:
    """Return the steps, one a line."""
    return "\n".join(map(str, trace))


@pytest.mark.soak
@pytest.mark.parametrize("world", AS_STATED)
def test_nobody_is_stranded_while_the_assumptions_hold(world: str) -> None:
    """However late each watch is, whatever is lost or refused, and whichever pod kube-scheduler takes next."""
    found = search(AS_STATED[world])
    assert found.most_stranded == 0, tell(found.stranded_by)
    assert found.pinned


@pytest.mark.parametrize(
    "world", [pytest.param(each, marks=pytest.mark.soak_only if "2 other" in each else ()) for each in WITH_OTHERS]
)
def test_each_place_of_another_pod_costs_one_pinned_vm_at_most(world: str) -> None:
    """A pod that no term brings to the node is not seen before it is bound: that is the bound, and it is reached."""
    found = search(WITH_OTHERS[world])
    assert found.beyond == 0, tell(found.beyond_by)
    assert found.most_stranded


@pytest.mark.parametrize("assumption", BROKEN)
def test_without_one_assumption_one_vm_is_stranded(assumption: str) -> None:
    """Each assumption is needed. That answers become pods in order is needed only with more VMs, if at all."""
    found = search(BROKEN[assumption])
    assert found.most_stranded == (0 if assumption == "in_order" else 1), tell(found.stranded_by)


@pytest.mark.parametrize("fault", FOUND_IN)
def test_a_planted_fault_is_found(fault: str) -> None:
    """And without the fault nothing is found in the same world: else the row shows nothing."""
    assert search(FOUND_IN[fault], FAULTS[fault], until_wrong=True).beyond
    without = search(FOUND_IN[fault])
    assert not without.beyond, tell(without.beyond_by)


def test_a_trace_leads_from_the_start_to_the_vm_that_is_stranded() -> None:
    """Step by step, so that a failure above can be followed."""
    found = search(Setting(nodes(3, 2), (N1, Shape(("n1",), places=2)), Budget(3)))
    assert found.most_stranded
    assert [step[:2] for step in found.stranded_by[:3]] == [("asks", 0), ("stored", 0), ("bound", 0)]
