"""What of Longhorn a node can lack: data engine v2, the CSI driver, and an NFS client for its kubelet."""

from typing import Any

import pytest
from msgspec import convert
from support.objects.builders import node, persistent_volume, share_manager_pod, virt_launcher_pod

from webhook.core.api.longhorn import LonghornNode
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.placement.longhorn_node import why_no_data_engine, why_no_driver, why_no_nfs_client
from webhook.core.reasons import Reason
from webhook.core.scheduler.cycle_state import ClaimVolume, CycleState
from webhook.core.scheduler.state.node_info import CSIDrivers
from webhook.core.scheduler.state.snapshot import SnapshotUnavailable
from webhook.core.view import NoObject

UNCOUNTED = SnapshotUnavailable("for a test")

Object = dict[str, Any]
WITHOUT = {"node.longhorn.io/disable-v2-data-engine": "true"}
V2 = {"dataEngine": "v2"}


def told(pod: Object | None = None, volume: Object | None = None) -> str | None:
    """Why not on node n1, whose label disables v2 there."""
    there = convert(node("n1", labels=WITHOUT), Node)
    volumes = [] if volume is None else [ClaimVolume("disk", convert(volume, PersistentVolume))]
    cycle = CycleState(convert(pod or virt_launcher_pod(), Pod), "vms", UNCOUNTED, volumes)
    found = why_no_data_engine("n1", there, cycle)
    return found and str(found)


def volume(**parts: Any) -> Object:
    """A PersistentVolume of data engine v2."""
    return persistent_volume("pv", claim="disk", handle="h", **{"attributes": V2, **parts})


REFUSED = (
    "DataEngineDisabled: node n1 is labeled node.longhorn.io/disable-v2-data-engine=true, "
    "so volume h of data engine v2 can't be attached there"
)


@pytest.mark.parametrize(
    ("made", "refused"),
    [
        pytest.param(volume(), True, id="attached to the pod's own node"),
        pytest.param(volume(driver=None), False, id="no CSI"),
        pytest.param({**volume(), "spec": None}, False, id="no spec"),
    ],
)
def test_a_volume_of_v2_is_attached_where_v2_is(made: Object, *, refused: bool) -> None:
    """On the pod's node, where no share-manager serves it."""
    assert told(volume=made) == (REFUSED if refused else None)


def server(args: list[str] | None, **labels: str) -> Object:
    """A share-manager's pod whose container has these arguments."""
    pod = share_manager_pod("h", labels=labels)
    pod["spec"]["containers"] = [{"name": "other"}, {"name": "share-manager", "args": args}]
    return pod


@pytest.mark.parametrize(
    ("pod", "refused"),
    [
        pytest.param(share_manager_pod("h", data_engine="v2"), True, id="v2"),
        pytest.param(share_manager_pod("h"), False, id="v1"),
        pytest.param(server(["--volume", "h", "--data-engine", "v2"]), True, id="among other containers"),
        pytest.param(server(["--volume", "h", "--data-engine"]), False, id="no value"),
        pytest.param(server(["--volume", "h"]), False, id="of a Longhorn without v2"),
        pytest.param(server(["--data-engine", "v2"]), False, id="no volume"),
        pytest.param(server(None), False, id="no arguments"),
        pytest.param(
            server(["--volume", "h", "--data-engine", "v2"], **{"longhorn.io/component": "x"}), False, id="no server"
        ),
        pytest.param({**share_manager_pod("h"), "spec": {}}, False, id="no containers"),
    ],
)
def test_a_share_managers_pod_says_what_it_serves(pod: Object, *, refused: bool) -> None:
    """Nothing has to be looked up for it."""
    assert told(pod) == (REFUSED if refused else None)


@pytest.mark.parametrize(
    ("drivers", "made", "refused"),
    [
        pytest.param({}, volume(), True, id="no driver at all"),
        pytest.param(None, volume(), False, id="no CSINode is known"),
        pytest.param({}, {**volume(), "spec": None}, False, id="a volume without a spec"),
        pytest.param({}, None, False, id="no volume: a share-manager pod mounts none"),
    ],
)
def test_kubelet_mounts_with_longhorns_driver(
    drivers: CSIDrivers | None, made: Object | None, *, refused: bool
) -> None:
    """A CSINode that is absent or not read says nothing against the node."""
    volumes = [] if made is None else [ClaimVolume("disk", convert(made, PersistentVolume), "n2")]
    found = why_no_driver("n1", drivers, CycleState(convert(virt_launcher_pod(), Pod), "vms", UNCOUNTED, volumes))
    assert (found and found.reason) == (Reason.DRIVER_MISSING if refused else None)


WITHOUT_CLIENT = {
    "metadata": {"name": "n1"},
    "status": {"conditions": [{"type": "NFSClientInstalled", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("node_", "refused"),
    [
        pytest.param(WITHOUT_CLIENT, True, id="no client"),
        pytest.param({"metadata": {}}, False, id="no status"),
        pytest.param(NoObject.UNAVAILABLE, False, id="not read"),
        pytest.param(None, False, id="a cluster without such objects"),
    ],
)
def test_what_a_share_manager_serves_needs_an_nfs_client(node_: Object | NoObject | None, *, refused: bool) -> None:
    """Only on the nodes of the VMs."""
    volumes = [ClaimVolume("disk", convert(volume(), PersistentVolume), "n1")]
    there = convert(node_, LonghornNode) if isinstance(node_, dict) else node_
    found = why_no_nfs_client("n1", there, CycleState(convert(virt_launcher_pod(), Pod), "vms", UNCOUNTED, volumes))
    assert (found and found.reason) == (Reason.NFS_CLIENT_MISSING if refused else None)
