"""The candidates of a live cluster: the decision of the next start from caches is that of files, and never a guess."""

from __future__ import annotations

import copy
from typing import Any, Final

import pytest
from support.models.candidate_caches import Object, files, filled, tracker
from support.objects import builders
from support.objects.fleets import disk, served

from webhook.core.api.kubevirt import HOSTNAME, LABEL_CREATED_BY
from webhook.core.api.meta import NamespacedName
from webhook.core.observe.candidate import Candidate, NextStart
from webhook.core.observe.vm_status import State
from webhook.core.opt_in import Mode, Policy
from webhook.core.view import Kind
from webhook.files.candidates import candidate_in
from webhook.files.vm_rows import pods_of_vms
from webhook.kube.candidates import CHANGED, NO_POD, OFF, POD_WAITS, CandidateTracker
from webhook.kube.kinds import WatchedPods

SMALL: Final = {"cpu": "2", "memory": "4Gi"}
HALF: Final = [{"name": "compute", "args": ["--name", "web"], "resources": {"requests": {"cpu": "1500m"}}}]
SPREAD: Final = {
    "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "db"}},
}  # fmt: skip
NOT_TWO: Final = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}


def vm_pod(name: str, *, node: str | None = "node-a", opt_in: str | None = None, **parts: Any) -> Object:
    """The pod of a VM that did not ask, with one claim."""
    return builders.vm_pod(name, claims=[f"{name}-root"], node=node, opt_in=opt_in, **parts)


def cluster(pod: Object, share_manager: str = "node-a", *others: Object) -> list[Object]:
    """Two nodes in two zones, one VM with its share-manager, and other pods."""
    nodes: list[Object] = []
    for name in ("node-a", "node-b"):
        taints = ["reserved:NoSchedule"] if name == "node-b" else []
        nodes += [builders.node(name, labels={"zone": name}, taints=taints, allocatable=SMALL)]
        nodes += [builders.longhorn_node(name)]
    return [*nodes, *disk("web-root"), *served("web-root", share_manager), pod, *others]


def anti(*terms: Object) -> Object:
    """Required anti-affinity."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


TOLERATES: Final = [{"key": "reserved", "operator": "Exists"}]
MIGRATED: Final = vm_pod("web", migration_target=True)
MIGRATED["spec"]["affinity"] = anti(
    {
        "labelSelector": {"matchLabels": {LABEL_CREATED_BY: MIGRATED["metadata"]["ownerReferences"][0]["uid"]}},
        "topologyKey": HOSTNAME,
    }
)
CASES: Final = {
    "its node has its share-manager": (cluster(vm_pod("web")), "required", "ShareManagerPod"),
    "its own pod takes the node": (cluster(vm_pod("web", containers=HALF)), "required", "ShareManagerPod"),
    "another pod takes the node": (
        cluster(vm_pod("web", node="node-b", containers=HALF), "node-a", vm_pod("other", containers=HALF)),
        "preferred",
        "NoRoom",
    ),
    "it repels itself": (
        cluster(vm_pod("web", labels={"app": "db"}, affinity=anti(NOT_TWO))), "required", "ShareManagerPod",
    ),
    "it repels another": (
        cluster(
            vm_pod("web", node="node-b", labels={"app": "db"}, affinity=anti(NOT_TWO)),
            "node-a",
            vm_pod("other", labels={"app": "db"}),
        ),
        "preferred",
        "PodAntiAffinity",
    ),
    "it has a taint that is not tolerated": (cluster(vm_pod("web"), "node-b"), "preferred", "TaintNotTolerated"),
    "it has a taint that is tolerated": (
        cluster(vm_pod("web", tolerations=TOLERATES), "node-b"), "required", "ShareManagerPod",
    ),
    "a selector of another zone": (
        cluster(vm_pod("web", node="node-b", nodeSelector={"zone": "node-b"})), "preferred", "NodeSelectorMismatch",
    ),
    "it is spread over zones": (
        cluster(
            vm_pod("web", tolerations=TOLERATES, labels={"app": "db"}, topologySpreadConstraints=[SPREAD]),
            "node-a",
        ),
        "required",
        "ShareManagerPod",
    ),
    "it was migrated": (cluster(MIGRATED), "required", "ShareManagerPod"),
    "its share-manager is stopped": (
        [*cluster(vm_pod("web"))[:-3], builders.share_manager("web-root", state="stopped"), vm_pod("web")],
        "unchanged",
        "ShareManagerNoNode",
    ),
}  # fmt: skip


async def decided(live: CandidateTracker) -> Candidate | str:
    """What the webhook would decide for the VM web."""
    rows = {row.name: row for row in (await live.refresh()).rows}
    return live.candidate(rows["web"])


def from_files(objects: list[Object]) -> NextStart:
    """The same from files, as the command candidates has it."""
    described = files(copy.deepcopy(objects))
    found = candidate_in(described, pods_of_vms(described)[NamespacedName("vms", "web")], Policy())
    assert found
    return found.next_start


@pytest.mark.parametrize(("objects", "decision", "reason"), CASES.values(), ids=CASES)
async def test_the_page_and_the_command_agree(objects: list[Object], decision: str, reason: str) -> None:
    """The VM's own pod does not count, and every rule of the pod does."""
    found = await decided(tracker(copy.deepcopy(objects)))
    assert isinstance(found, Candidate)
    assert (found.next_start.decision, found.next_start.reason) == (decision, reason)
    assert found.next_start == from_files(objects)


async def test_a_decision_leaves_the_pods_as_they_are_counted() -> None:
    """An admission at the same moment sees the pod of the VM."""
    live = tracker(cluster(vm_pod("web", containers=HALF)))
    snapshot = live._caches.snapshot(0.0)
    before = [
        copy.deepcopy(snapshot.node_info("node-a").requested.amounts),
        snapshot.node_info("node-a").requested.pods,
    ]
    await decided(live)
    assert [snapshot.node_info("node-a").requested.amounts, snapshot.node_info("node-a").requested.pods] == before


async def test_only_vms_that_did_not_ask_and_have_a_share_manager_are_candidates() -> None:
    """`false` and a wrong value ask for nothing. A VM whose other pod asks does ask."""
    asks, both = vm_pod("asks", opt_in="true"), vm_pod("web-2", vm="web", opt_in="true")
    objects = cluster(
        vm_pod("web", opt_in="false"), "node-b", asks, vm_pod("plain"), builders.vm_pod("diskless", opt_in=None)
    )
    more = [*disk("asks-root"), *served("asks-root", "node-a"), *disk("plain-root", access_modes=["ReadWriteOnce"])]
    found = await tracker([*objects, *more]).refresh()
    assert [(row.name, row.state) for row in found.rows] == [("web", State.APART)]
    assert (found.known, found.late) == (True, ())
    found = await tracker(
        [*objects, *more, {**both, "metadata": {**both["metadata"], "name": "virt-launcher-2"}}]
    ).refresh()
    assert found.rows == ()


async def test_a_second_pass_computes_what_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 10 s have passed there is no second one."""
    gone = [vm_pod("gone"), *disk("gone-root"), *served("gone-root", "node-b")]
    live = tracker(cluster(vm_pod("web"), "node-a", *gone))
    first = await live.refresh()
    assert await live.refresh() is first
    rows = {row.name: row for row in first.rows}
    pods = live._caches[Kind.VIRT_LAUNCHER_POD]
    pods.drop("vms/virt-launcher-gone")
    monkeypatch.setattr(live, "_passed_at", 0.0)
    assert live.candidate(rows["gone"]) == CHANGED
    second = await live.refresh()
    assert second is not first
    assert [row is rows[row.name] for row in second.rows] == [True]


async def test_what_is_not_known_is_said() -> None:
    """Without a node, without the whole pod, with caches that are late, and with the mode off."""
    assert await decided(tracker(cluster(vm_pod("web", node=None)))) == POD_WAITS
    assert await decided(tracker(cluster(vm_pod("web", tolerations={"key": 5})))) == NO_POD
    lost = CandidateTracker(filled(cluster(vm_pod("web")), lost_seconds=60.0), Policy())
    assert str(await decided(lost)).startswith(
        "the server is not up to date: persistentvolumeclaims, persistentvolumes, n"
    )
    assert "nodes: cut: the connection broke" in (await lost.refresh()).late
    off = await tracker(cluster(vm_pod("web")), Policy(Mode.OFF)).refresh()
    assert (off.known, off.rows, off.late) == (False, (), (OFF,))


async def test_before_the_pods_are_listed_nothing_is_known() -> None:
    """No row is no statement."""
    caches = filled([], WatchedPods.VIRT_LAUNCHER)
    caches[Kind.VIRT_LAUNCHER_POD].synced = False
    found = await CandidateTracker(caches, Policy()).refresh()
    assert (found.known, found.rows) == (False, ())
    assert found.late


async def test_a_process_that_watches_virt_launcher_pods_only_has_them_too() -> None:
    """It decides without the room on nodes, as its admissions do."""
    live = CandidateTracker(filled(cluster(vm_pod("web", containers=HALF)), WatchedPods.VIRT_LAUNCHER), Policy())
    found = await decided(live)
    assert isinstance(found, Candidate)
    (row,) = (await live.refresh()).rows
    assert (found.next_start.decision, live.owner(row)) == ("required", "web")
