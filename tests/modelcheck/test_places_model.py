"""Every state of the protocol of places: replicas, watches, kube-scheduler, and whatever goes wrong between them.

`tests/modelcheck` has the worlds and the search; decisions and caches are the real ones. `make soak` has more VMs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
from modelcheck import settings
from modelcheck.faults import FAULTS
from modelcheck.pods import Shape
from modelcheck.search import Trace, search
from modelcheck.settings import N1, N2, WISH, nodes
from modelcheck.state import Assumptions, Budget, Setting
from support.sizes import size

VMS: Final = size("MODEL_VMS")
AS_STATED: Final = settings.as_stated(VMS)
WITH_OTHERS: Final = settings.with_others(3)
BROKEN: Final = settings.with_one_assumption_broken(3)
_RETRIED: Final = Setting(nodes(1, 1), (N1, N2), Budget(2, refused=1, repeated=1, ended=1))
_ANYWHERE: Final = Assumptions(only_own_terms=False)
FOUND_IN: Final[Mapping[str, Setting]] = {
    "a share is not divided by the replicas": Setting(nodes(2, 2), (N1, N2), Budget(3)),
    "an answer is not assumed": Setting(nodes(2, 2), (N1, N2), Budget(3)),
    "a pod that a watch shows stays assumed": _RETRIED,
    "an answer never expires": _RETRIED,
    "the time of one answer ends the next answer": _RETRIED,
    "a pod that is gone stays counted": _RETRIED,
    "pods on the way to the node are not counted as such": Setting(nodes(2, 1), (N1, WISH), Budget(4)),
    "a pinned pod counts only until kube-scheduler has evaluated it": Setting(
        nodes(1, 1), (N1,), Budget(3, lost=1, ended=1), _ANYWHERE
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


@pytest.mark.parametrize(
    "budget",
    [Budget(2, lost=1, refused=1, repeated=1, ended=1), Budget(2, refused=1, restarts=1, ended=1), Budget(2, others=1)],
    ids=["lost, refused, asked again", "restarted", "other pods"],
)
def test_no_promise_outlives_its_reason(budget: Budget) -> None:
    """Once every pod is bound, gone or refused, each replica counts what one that has just started counts."""
    found = search(Setting(nodes(2, 2), (N1, WISH), budget), promises=True)
    assert not found.outlived_by, tell(found.outlived_by)


@pytest.mark.parametrize("fault", FOUND_IN)
def test_a_planted_fault_is_found(fault: str) -> None:
    """And without the fault nothing is found in the same world: else the row shows nothing."""
    found = search(FOUND_IN[fault], FAULTS[fault], promises=FOUND_IN[fault] is _RETRIED, until_wrong=True)
    assert found.beyond or found.outlived_by
    without = search(FOUND_IN[fault], promises=FOUND_IN[fault] is _RETRIED)
    assert not without.beyond, tell(without.beyond_by)
    assert not without.outlived_by, tell(without.outlived_by)


def test_a_trace_leads_from_the_start_to_the_vm_that_is_stranded() -> None:
    """Step by step, so that a failure above can be followed."""
    found = search(Setting(nodes(3, 2), (N1, Shape(("n1",), places=2)), Budget(3)))
    assert found.most_stranded
    assert [step[:2] for step in found.stranded_by[:3]] == [("asks", 0), ("stored", 0), ("bound", 0)]
