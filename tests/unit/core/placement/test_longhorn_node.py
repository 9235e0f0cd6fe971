"""What a node can lack for the volumes of a pod: data engine v2, a CSI driver, and what Longhorn says that it lacks."""

from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import LONGHORN_NAMESPACE, ViewWithGaps, cluster
from support.objects.builders import (
    longhorn_node,
    node,
    persistent_volume,
    persistent_volume_claim,
    share_manager_pod,
    virt_launcher_pod,
)

from webhook.core.api.longhorn import LonghornNode
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.placement.longhorn_node import lacks_known, lacks_of, why_no_data_engine, why_no_driver
from webhook.core.reasons import Reason
from webhook.core.scheduler.cache import CSIDrivers, SnapshotUnavailable
from webhook.core.scheduler.cycle_state import ClaimVolume, CycleState
from webhook.core.view import Kind, NoObject, ObjectRef, Ref

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
        pytest.param({}, volume(driver=None), False, id="no CSI"),
        pytest.param({"driver.longhorn.io": None}, volume(driver="x.csi.example.com"), True, id="another driver"),
    ],
)
def test_kubelet_mounts_with_the_volumes_driver(
    drivers: CSIDrivers | None, made: Object | None, *, refused: bool
) -> None:
    """A CSINode that is absent or not read says nothing against the node."""
    volumes = [] if made is None else [ClaimVolume("disk", convert(made, PersistentVolume), "n2")]
    found = why_no_driver("n1", drivers, CycleState(convert(virt_launcher_pod(), Pod), "vms", UNCOUNTED, volumes))
    assert (found and found.reason) == (Reason.DRIVER_MISSING if refused else None)


def test_a_node_that_longhorn_does_not_have_lacks_nothing() -> None:
    """It may be that Longhorn's nodes could not be read, or that a cluster has none."""
    for node_ in (None, NoObject.UNAVAILABLE, NoObject.NOT_FOUND, convert({"metadata": {}}, LonghornNode)):
        assert list(lacks_known(node_)) == []


@pytest.mark.parametrize(
    "gap",
    [
        pytest.param(ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "disk")), id="claim"),
        pytest.param(ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "pvc-disk")), id="volume"),
    ],
)
def test_whether_a_served_volume_is_encrypted_may_be_unknown(gap: Ref) -> None:
    """Then the share-manager pod is steered as if it were not: a preference does no harm."""
    made = persistent_volume("pvc-disk", claim="disk", attributes={"encrypted": "true"})
    claim = persistent_volume_claim("disk", volume_name="pvc-disk")
    cycle = CycleState(convert(share_manager_pod("pvc-disk"), Pod), LONGHORN_NAMESPACE, UNCOUNTED)
    sealed = convert(
        longhorn_node("n1", conditions={"KernelModulesLoaded": "x: Kernel modules [dm_crypt]"}), LonghornNode
    )
    for view, words in (
        (cluster(made, claim), ["dm_crypt"]),
        (ViewWithGaps(cluster(made, claim), {gap: NoObject.UNAVAILABLE}), []),
    ):
        assert [lack.word for lack in lacks_of("n1", sealed, cycle, view)] == words
