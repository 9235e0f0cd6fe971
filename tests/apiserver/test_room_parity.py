"""Where core says that a pod fits, kube-scheduler binds it; where that can't, core never says so.

`make soak` asks for more situations, and ROOM_PARITY_SEED for others.
"""

from __future__ import annotations

import os
from typing import Final

import pytest
from support.control_plane.control_plane import NEWEST, OLDEST, ControlPlane
from support.scenarios.room_parity import FITS, OURS, Outcome, Parity, causes
from support.sizes import size
from support.strategies.room_situations import Situations

SITUATIONS: Final = size("ROOM_PARITY_SITUATIONS")
SEED: Final = int(os.environ.get("ROOM_PARITY_SEED", "7"))
OVERCAUTIOUS_MOST: Final = 0.02  # of all: only pods are drawn for which a node can be required, and most are bound
SHOWN: Final = 20

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module", params=[NEWEST, pytest.param(OLDEST, marks=pytest.mark.soak_only)])
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    """What the scheduler did, and what core said: on a control plane of its own, which goes with all that is on it.

    The oldest Kubernetes gets a quarter of the situations, in the soak alone.
    """
    is_old = request.param == OLDEST
    drawing = Situations(SEED)
    directory = tmp_path_factory.mktemp("control-plane-parity")
    with ControlPlane(directory, version=request.param, longhorn=False) as plane, Parity(plane.api) as parity:
        return parity.outcomes([drawing.draw(number) for number in range(SITUATIONS // 4 if is_old else SITUATIONS)])


def test_what_fits_is_bound(outcomes: list[Outcome]) -> None:
    """A single one that is not would be a VM that never starts."""
    unsafe = [outcome for outcome in outcomes if outcome.unsafe]
    assert not unsafe, "\n".join(map(str, unsafe[:SHOWN]))


def test_hardly_anything_that_is_bound_is_said_not_to_fit(outcomes: list[Outcome]) -> None:
    """Core refuses a node that kube-scheduler takes, for a plain pod, only in these cases.

    The node is cordoned, and the pod tolerates that. What a pod takes is estimated, and never too low. A term between
    pods selects namespaces by labels. Or the node has a taint that only a toleration without a key covers, which may be
    that of a drain.
    """
    overcautious = [outcome for outcome in outcomes if outcome.overcautious and outcome.core != OURS]
    assert len(overcautious) <= OVERCAUTIOUS_MOST * len(outcomes), causes(overcautious)
    found = {code.partition(":")[0] for code in causes(overcautious)}
    assert found <= {"NodeCordoned", "NoRoom", "ExcludedByPod"}, overcautious[:SHOWN]


@pytest.mark.parametrize(
    ("cause", "percent"),
    [
        (FITS, 100 / 3),
        ("NoRoom: cpu", 3),
        ("NoRoom: memory", 2),
        ("NoRoom: pods", 1),
        ("NoRoom: ephemeral-storage", 1),
        ("NoRoom: devices.kubevirt.io/kvm", 0.5),
        ("NoRoom: hugepages-2Mi", 0.5),
        ("ExcludedByPod", 2),
        ("TaintNotTolerated", 1),
        ("NodeCordoned", 0.5),
        ("NodeSelectorMismatch", 0.5),
        ("NodeAffinityMismatch", 0.5),
    ],
)
def test_every_cause_was_there_to_disagree_about(outcomes: list[Outcome], cause: str, percent: float) -> None:
    """Situations that all fit, or never for this cause, would show nothing."""
    assert causes(outcomes)[cause] >= percent / 100 * len(outcomes), causes(outcomes)
