"""A VM starts from nothing on a real control plane: its share-manager pod comes to where the scheduler has put it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from support.control_plane import audit
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_api import Object
from support.control_plane.vm_starts import GATE, NODES, Start, decision
from support.scenarios.admitting import caches, until, until_watched
from support.scenarios.cold_starting import PODS, WEBHOOK, Here, pods_on, stopped, tickets_of

VM: Final = Start("db01")
RESTORED: Final = Start("db02", restored=True)
GATED: Final = [{"name": GATE}]
ROLE: Final = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": NAME},
}


@pytest.fixture(scope="module")
def running(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    """The program, that knows two VMs, both stopped."""
    with stopped(installed, tmp_path_factory.mktemp("cold-start"), [VM, RESTORED]) as here:
        yield here


@pytest.fixture
def here(running: Here) -> Iterator[Here]:
    """As `running`; every VM is stopped again afterwards, and the program knows."""
    yield running
    running.starting.clear()
    running.until_counted(0)


def placed(here: Here, pod: Object) -> str:
    """Where the scheduler has put a share-manager pod: it puts it somewhere whatever we say."""
    return here.starting.placed(pod)


@pytest.mark.parametrize("start", [VM, RESTORED], ids=["provisioned", "restored"])
def test_it_follows_its_vm(start: Start, here: Here) -> None:
    """From memory, whatever the PersistentVolume is called: told in the pod, to the audit log and in ours."""
    launcher = here.starting.vm(start)
    node = here.starting.placed(launcher)
    here.until_known()
    here.starting.ticket(start, node)
    with here.seeing() as seen:
        pod = here.starting.share_manager(start)
        assert placed(here, pod) == node
    name = launcher["metadata"]["name"]
    because = f"claim vms/{start.vm}: VM {start.vm} uses it, and its pod {name} is on node {node}"
    assert decision(pod) == f"preferred on {node}: ConsumerOnNode: {because}"
    told = audit.annotations(here.installed.plane.directory, pod, WEBHOOK)
    assert told == {"decision": "preferred", "reason": "ConsumerOnNode", "node": node, "because": because}
    assert seen().lines[0]["nodes"] == [node]
    assert (seen().reads, seen().each_read(0), seen().failed_open) == ([], True, 0)


def test_a_vm_whose_node_is_still_on_its_way_to_us(here: Here) -> None:
    """The pod is known, and its binding is not: the volume's ticket tells the node, for one GET."""
    launcher = here.starting.vm(VM, schedulingGates=GATED)
    here.until_counted(1)
    with here.late():
        node = here.starting.let_go(launcher)
        here.starting.ticket(VM, node)
        with here.seeing() as seen:
            assert placed(here, here.starting.share_manager(VM)) == node
        assert seen().reads == [tickets_of(VM)]
        assert (seen().each_read(1), seen().reasons, seen().failed_open) == (True, {"AttachmentTicket"}, 0)


def test_a_vm_that_is_still_on_its_way_to_us(here: Here) -> None:
    """The fresh cache lacks the pod. The attachment ticket names the node, and a list of that node shows the VM."""
    with here.late(), here.seeing() as seen:
        node, pod = here.starting.start(VM)
        assert placed(here, pod) == node
        assert seen().reads == [tickets_of(VM), pods_on(node)]
        assert (seen().each_read(2), seen().reasons, seen().failed_open) == (True, {"ConsumerOnNode"}, 0)


def test_without_a_cache_of_pods(here: Here) -> None:
    """RBAC forbids the watch: the webhook does not trust the cache, and still finds the VM by the attachment ticket."""
    api = here.starting.api
    rules = api.get(ROLE)["rules"]
    no_watch = [{**rule, "verbs": ["list"]} if rule["resources"] == ["pods"] else rule for rule in rules]
    api.patch(ROLE, {"rules": no_watch})
    try:
        here.way.cut()
        until(lambda: not caches(here.serving)[PODS].fresh, "doubt of the pods")
        until(lambda: all(c.fresh for name, c in caches(here.serving).items() if name != PODS), "the rest")
        with here.seeing() as seen:
            node, pod = here.starting.start(VM)
            assert placed(here, pod) == node
        assert seen().reads == [tickets_of(VM), pods_on(node)]
        assert (seen().reasons, seen().failed_open) == ({"ConsumerOnNode"}, 0)
    finally:
        api.patch(ROLE, {"rules": rules})
        until_watched(here.serving)


def test_a_vm_that_was_stopped_in_between(here: Here) -> None:
    """Its pod is gone, and the ticket is left: nobody uses the volume, and the share-manager pod runs as it is."""
    launcher = here.starting.vm(VM)
    node = here.starting.placed(launcher)
    here.starting.ticket(VM, node)
    here.starting.api.delete(launcher)
    here.until_counted(0)
    with here.seeing() as seen:
        pod = here.starting.share_manager(VM)
        assert placed(here, pod) in NODES
    assert "affinity" not in pod["spec"]
    assert seen().reads == [tickets_of(VM), pods_on(node)]
    assert (seen().reasons, seen().failed_open) == ({"NoConsumer"}, 0)


def test_a_vm_whose_end_is_still_on_its_way_to_us(here: Here) -> None:
    """What was last known is good enough for a wish: nothing strands on it."""
    launcher = here.starting.vm(VM)
    node = here.starting.placed(launcher)
    here.until_known()
    with here.late():
        here.starting.api.delete(launcher)
        pod = here.starting.share_manager(VM)
        assert placed(here, pod) == node
    assert list(pod["spec"]["affinity"]) == ["podAffinity"]
    assert list(pod["spec"]["affinity"]["podAffinity"]) == ["preferredDuringSchedulingIgnoredDuringExecution"]
