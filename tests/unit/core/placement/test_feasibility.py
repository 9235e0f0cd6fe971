from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import MISSING, Gap, ViewWithGaps, cluster, missing_after
from support.objects.builders import longhorn_node, node, virt_launcher_pod

from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.decision import NodeFit
from webhook.core.placement.feasibility import evaluate
from webhook.core.reasons import Reason
from webhook.core.scheduler.cycle_state import ClaimVolume, CycleState
from webhook.core.view import ClusterView, Kind, NoObject, ObjectRef, Ref

N1, LONGHORN_N1 = (
    ObjectRef(Kind.NODE, NamespacedName("", "n1")),
    ObjectRef(Kind.LONGHORN_NODE, NamespacedName("", "n1")),
)


def pod(**spec: Any) -> Pod:
    """A launcher pod with fields of its spec."""
    return convert(virt_launcher_pod(**spec), Pod)


def evaluated(candidate: Pod, view: ClusterView, volumes: tuple[ClaimVolume, ...] = ()) -> NodeFit:
    """What comes out for n1 without other pods."""
    return evaluate("n1", CycleState(candidate, "vms", view.snapshot(), volumes), view)


HEALTHY = node("n1", labels={"zone": "a"})
PLAIN = pod()


@pytest.mark.parametrize(
    ("gaps", "refs"),
    [
        pytest.param({N1: MISSING}, (N1,), id="the node"),
        pytest.param({LONGHORN_N1: MISSING}, (LONGHORN_N1,), id="Longhorn's node"),
        pytest.param({N1: MISSING, LONGHORN_N1: MISSING}, (N1, LONGHORN_N1), id="both at once"),
        pytest.param({N1: NoObject.UNAVAILABLE, LONGHORN_N1: MISSING}, (LONGHORN_N1,), id="one is given up"),
    ],
)
def test_an_unread_node_is_asked_for(gaps: dict[Ref, Gap], refs: tuple[Ref, ...]) -> None:
    """Everything that is lacking is asked for together."""
    view = ViewWithGaps(cluster(HEALTHY, longhorn_node("n1")), gaps)
    assert missing_after(view, lambda view: evaluated(PLAIN, view)) == list(refs)


@pytest.mark.parametrize(
    ("lost", "kind"),
    [
        pytest.param(N1, "Node", id="the node"),
        pytest.param(LONGHORN_N1, "Longhorn Node", id="Longhorn's node"),
    ],
)
def test_a_node_that_could_not_be_read_is_preferred_and_not_feasible(lost: Ref, kind: str) -> None:
    """A lookup that failed says nothing of the node: it must not be required, and may be wished for."""
    found = evaluated(PLAIN, ViewWithGaps(cluster(HEALTHY, longhorn_node("n1")), {lost: NoObject.UNAVAILABLE}))
    assert isinstance(found, NodeFit)
    assert (found.why.reason, found.feasible, found.preferable) == (Reason.NODE_LOOKUP_FAILED, False, True)
    assert f"its {kind} could not be read (503 for a test)" in found.why.sentence
