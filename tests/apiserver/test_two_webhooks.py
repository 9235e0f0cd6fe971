"""Two webhooks place one pod: ours, and one that writes what virthorn-scheduler or longhorn-replica-affinity writes.

virthorn-scheduler replaces the node affinity by one term for a node, by default a preference (pkg/webhook/handler.go,
buildAffinity); it does so for share-manager pods, too. longhorn-replica-affinity appends preferences of weight 30
(internal/webhook/affinity.go, Merge). Both name the node by its label kubernetes.io/hostname. The share-manager is on
node-a. The VM's pod has our annotation and that of virthorn-scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final, NamedTuple

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Api, Object
from support.control_plane.vm_starts import Starting
from support.fakes.webhooks import EARLIER, LATER, Later, later_webhook
from support.objects import builders
from support.objects.patches import add
from support.scenarios.admitting import Admission, until, until_watched

from webhook.core.patch.decision_patch import Operation

HOME, AWAY = "node-a", "node-b"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _on(node: str) -> Object:
    return {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}


def _required(node: str, _order: str) -> Operation:
    terms = {"nodeSelectorTerms": [_on(node)]}
    return add("/spec/affinity", {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


def _preferred(node: str, _order: str) -> Operation:
    terms = [{"weight": 100, "preference": _on(node)}]
    return add("/spec/affinity", {"nodeAffinity": {_PREFERRED: terms}})


def _appended(node: str, order: str) -> Operation:
    term = {"weight": 30, "preference": _on(node)}
    if order == LATER:
        return add(f"/spec/affinity/nodeAffinity/{_PREFERRED}/-", term)
    return add("/spec/affinity", {"nodeAffinity": {_PREFERRED: [term]}})


class Case(NamedTuple):
    """What the other webhook does to a pod.

    `written` returns the operation, for a node and for its place in the order. `to` is that node.
    `pinned`: whether we then pin the pod. `node`: the node that the VM gets.
    """

    written: Callable[[str, str], Operation]
    to: str
    pinned: bool
    node: str


CASES: Final = {
    "virthorn prefers the same node": Case(_preferred, HOME, pinned=True, node=HOME),
    "virthorn prefers another node": Case(_preferred, AWAY, pinned=True, node=HOME),
    "virthorn requires the same node": Case(_required, HOME, pinned=True, node=HOME),
    "virthorn requires another node": Case(_required, AWAY, pinned=False, node=AWAY),
    "replica-affinity prefers the same node": Case(_appended, HOME, pinned=True, node=HOME),
    "replica-affinity prefers another node": Case(_appended, AWAY, pinned=True, node=HOME),
}


class Here(NamedTuple):
    """The API server, the other webhook, and its place in the order."""

    api: Api
    other: Later
    order: str


@pytest.fixture(scope="module", params=[EARLIER, LATER], ids=["theirs first", "ours first"])
def here(request: pytest.FixtureRequest, installed: Installed) -> Iterator[Here]:
    """Two equal nodes, and the two webhooks in one order."""
    api = installed.plane.api
    with ExitStack() as stack:
        stack.enter_context(Starting(api))
        stack.enter_context(ClusterState(api)).become(
            [
                *(builders.node(node, labels={"kubernetes.io/hostname": node}) for node in (HOME, AWAY)),
                *map(builders.longhorn_node, (HOME, AWAY)),
                builders.persistent_volume_claim("disk", volume_name="pvc-disk"),
                builders.persistent_volume("pvc-disk", claim="disk"),
                builders.share_manager("pvc-disk", state="running", ownerID=HOME),
                builders.share_manager_pod("pvc-disk", nodeName=HOME),
                *map(builders.instance_manager_pod, (HOME, AWAY)),
            ]
        )
        server = stack.enter_context(installed.serving())
        until_watched(server)
        stack.callback(installed.disable)
        installed.enable()
        installed.until_called()
        yield Here(api, stack.enter_context(later_webhook(installed, request.param)), request.param)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_two_webhooks_do_no_harm(case: Case, here: Here) -> None:
    """The VM gets a node, in both orders the same one. A node that the other webhook requires wins over ours."""
    until(lambda: _created(here.api, dryRun="All").required == [HOME], "a pin: no earlier pod is on its way")
    with here.other.doing(case.written(case.to, here.order)):
        found = _created(here.api)
    try:
        assert (found.required == [HOME]) is case.pinned
        assert HOME in found.preferred or case.node != HOME
        assert Starting(here.api).placed(found.pod) == case.node
    finally:
        here.api.delete(found.pod)


def _created(api: Api, **parameters: str) -> Admission:
    pod = builders.vm_pod("db01", claims=["disk"])
    pod["metadata"]["annotations"]["scheduler.virthorn-scheduler.io/co-schedule"] = "true"
    return Admission(api.create(pod, **parameters), 0, 0)
