"""What a node can lack for the volumes of a pod: data engine v2, a CSI driver, and what Longhorn says that it lacks."""

from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import LONGHORN_NAMESPACE, ViewWithGaps, cluster
from support.objects.builders import (
    longhorn_node,
    persistent_volume,
    persistent_volume_claim,
    share_manager_pod,
)

from webhook.core.api.longhorn import LonghornNode
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.placement.longhorn_node import lacks_of
from webhook.core.scheduler.cache import SnapshotUnavailable
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.view import Kind, NoObject, ObjectRef, Ref

UNCOUNTED = SnapshotUnavailable("for a test")

Object = dict[str, Any]
V2 = {"dataEngine": "v2"}


def volume(**parts: Any) -> Object:
    """A PersistentVolume of data engine v2."""
    return persistent_volume("pv", claim="disk", handle="h", **{"attributes": V2, **parts})


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
