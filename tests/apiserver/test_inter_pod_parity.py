"""Where core allows a node, as far as other pods matter, kube-scheduler binds; where that can't, core never does.

`make soak` asks for more groups, and INTERPOD_PARITY_SEED for others.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Final

import pytest
from support.control_plane.control_plane import NEWEST, OLDEST, ControlPlane
from support.scenarios.inter_pod_parity import PASSED, Outcome, Parity, drawn
from support.sizes import size

GROUPS: Final = size("INTERPOD_PARITY_GROUPS")
SEED: Final = int(os.environ.get("INTERPOD_PARITY_SEED", "7"))
ROUNDS: Final = 7
SHOWN: Final = 20
UNKNOWN: Final = frozenset(
    {
        "HostnameNotUnique",
        "InterPodAffinity",
        "MatchLabelKeys",
        "NamespacesUnknown",
        "PodAffinityUnmet",
        "TopologySpread",
    }
)

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module", params=[NEWEST, pytest.param(OLDEST, marks=pytest.mark.soak_only)])
def version(request: pytest.FixtureRequest) -> str:
    """The version of Kubernetes; the oldest in the soak alone."""
    told: str = request.param
    return told


@pytest.fixture(scope="module")
def outcomes(version: str, tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    """What the scheduler did, and what core said: on a control plane of its own, which goes with all that is on it.

    The oldest Kubernetes gets a quarter of the groups.
    """
    directory = tmp_path_factory.mktemp("control-plane-interpod")
    groups = GROUPS // 4 if version == OLDEST else GROUPS
    with ControlPlane(directory, version=version, longhorn=False) as plane:
        return Parity(plane.api, label_keys=version != OLDEST).outcomes(list(drawn(SEED, groups, ROUNDS)))


def test_where_it_is_allowed_it_is_bound(outcomes: list[Outcome]) -> None:
    """A single one that is not would be a VM that never starts."""
    unsafe = [outcome for outcome in outcomes if outcome.unsafe]
    assert not unsafe, "\n".join(map(str, unsafe[:SHOWN]))


def test_what_is_bound_is_refused_for_few_causes(outcomes: list[Outcome]) -> None:
    """Only what the pods of one node don't decide: other topologies, labels of namespaces, the first of its kind."""
    overcautious = Counter(outcome.said for outcome in outcomes if outcome.overcautious)
    assert overcautious.keys() <= UNKNOWN, overcautious
    assert overcautious["NamespacesUnknown"] <= 0.04 * len(outcomes), overcautious


def test_the_model_is_the_scheduler(outcomes: list[Outcome]) -> None:
    """What unit tests compare core with, thousands of times, is right: with the pod as it is, and as it is pinned."""
    wrong = [outcome for outcome in outcomes if bool(outcome.model) is (outcome.scheduler is None)]
    assert not wrong, "\n".join(map(str, wrong[:SHOWN]))


@pytest.mark.parametrize(
    ("said", "percent"),
    [
        (PASSED, 15),
        ("PodAffinityUnmet", 5),
        ("PodAntiAffinity", 3),
        ("ExcludedByPod", 2),
        ("TopologySpread", 10),
        ("InterPodAffinity", 5),
        ("HostnameNotUnique", 5),
        ("NamespacesUnknown", 1),
    ],
)
def test_every_cause_was_there_to_disagree_about(outcomes: list[Outcome], said: str, percent: float) -> None:
    """Situations that are all allowed, or never refused for this cause, would show nothing."""
    counted = Counter(outcome.said for outcome in outcomes)
    assert counted[said] >= percent / 100 * len(outcomes), counted
