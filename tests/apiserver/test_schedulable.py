"""Where kube-scheduler binds a pod as it is written, it binds the pod as the webhook patches it, too.

The clusters are those of `tests/unit/core/placement/test_schedulable.py`, where a model of the filters answers. Each
has more than 100 nodes, so that a preference can go with a short list. SCHEDULABLE_SEED draws others.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ControlPlane
from support.control_plane.kube_answers import is_judged, refusal
from support.control_plane.kube_api import Api, Object
from support.objects import builders_pods
from support.sizes import size
from support.strategies.zoned_clusters import HOST, ZonedCluster, drawn, stranding
from support.waits import MAX_WAIT_SECONDS

from webhook.core.decision import Pin

CLUSTERS: Final = size("SCHEDULABLE_CLUSTERS")
SEED: Final = int(os.environ.get("SCHEDULABLE_SEED", "0"))
BARRIER: Final = "barrier"  # a namespace, so that no rule of a VM is about its pods; and the key of a label
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

pytestmark = pytest.mark.soak


class Outcome(NamedTuple):
    """What kube-scheduler says of the pod as written and as patched: its words, None where it bound the pod."""

    cluster: ZonedCluster
    decision: Pin
    written: str | None
    patched: str | None


class Scheduling:
    """Has one cluster after the other on a control plane, and asks its kube-scheduler about pods."""

    def __init__(self, api: Api, state: ClusterState) -> None:
        self._api, self._state = api, state
        self._turns = itertools.count()
        state.namespace(BARRIER)

    def outcome(self, cluster: ZonedCluster) -> Outcome:
        """Return what kube-scheduler says in this cluster of the VM's pod as written, and then of the patched one."""
        decision, patched = cluster.answered()
        self._state.become([*cluster.nodes, *cluster.pods, *cluster.disk])
        first = cluster.nodes[0]
        return Outcome(cluster, decision, self._asked(cluster.pod, first), self._asked(patched, first))

    def _asked(self, pod: Object, node: Object) -> str | None:
        self._until_seen(node)
        return self._judged(pod)

    def _judged(self, pod: Object) -> str | None:
        """Create a pod, and delete it. Return why kube-scheduler refuses it, None if it bound it."""
        created = self._api.create(pod)
        judged = self._api.wait_for(created, lambda found: bool(found and is_judged(found)), what="judged")
        self._api.delete(created)
        assert judged is not None
        return refusal(judged)

    def _until_seen(self, node: Object) -> None:
        """Wait until kube-scheduler knows all nodes and pods, and that the last pod is gone.

        A label of a node and a pod come last, each on its watch. A pod that needs both is bound when both are known.
        """
        turn = {BARRIER: str(next(self._turns))}
        marker = builders_pods.pod(
            f"there-{turn[BARRIER]}", namespace=BARRIER, node=node["metadata"]["name"], labels=turn
        )
        probe = builders_pods.pod("probe", namespace=BARRIER)
        near = [{"topologyKey": HOST, "labelSelector": {"matchLabels": turn}}]
        probe["spec"] |= {
            "affinity": {"podAffinity": {REQUIRED: near}},
            "nodeSelector": turn,
            "tolerations": [{"operator": "Exists"}],
        }
        self._api.create(marker)
        self._api.patch(node, {"metadata": {"labels": turn}})
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        while told := self._judged(probe):
            assert time.monotonic() < deadline, told
        self._api.delete(marker)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    """The issue's cluster, and others; those with the same nodes one after the other."""
    found = [stranding(), *(drawn(Random(SEED + seed)) for seed in range(CLUSTERS - 1))]  # noqa: S311 - for a test
    found.sort(key=lambda cluster: (cluster.zones, cluster.tainted))
    directory = tmp_path_factory.mktemp("control-plane-schedulable")
    with ControlPlane(directory, longhorn=False) as plane, ClusterState(plane.api) as state:
        scheduling = Scheduling(plane.api, state)
        return list(map(scheduling.outcome, found))


def described(outcomes: Sequence[Outcome]) -> str:
    """A line for each."""
    return "\n".join(f"{each.cluster}\n{each.decision}\n{each.written}\n{each.patched}" for each in outcomes)


def test_a_patched_pod_gets_a_node_where_the_pod_as_written_does(outcomes: list[Outcome]) -> None:
    """Pinned, on a short list, or with a preference alone."""
    stranded = [each for each in outcomes if each.written is None and each.patched is not None]
    assert not stranded, described(stranded)


def test_a_vm_that_must_be_spread_over_a_small_zone_gets_a_node(outcomes: list[Outcome]) -> None:
    """130 nodes in zones of 64, 64 and 2: a short list would have no node of the third zone."""
    [found] = [each for each in outcomes if each.cluster == stranding()]
    assert (found.written, found.patched, found.decision.shortlist) == (None, None, ())


def test_the_clusters_tell_something(outcomes: list[Outcome]) -> None:
    """With and without a short list pods get a node; with few clusters not every kind of decision occurs."""
    kinds = {bool(each.decision.shortlist) for each in outcomes if each.written is None}
    assert kinds == {True, False}
