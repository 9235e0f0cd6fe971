"""explain for share-manager pods if the API server denies a part: what it prints, and what it still decides."""

from __future__ import annotations

from typing import Final

import pytest
from support.drivers.explaining_live import LONGHORN, Explain
from support.fakes.static_api import StaticApi
from support.objects.builders import Object
from support.scenarios import cold_start
from support.scenarios.cold_start import VOLUME, a_class, a_volume

pytestmark = pytest.mark.usefixtures("no_environment")
SAID: Final = 'User "alice" cannot list resource "x"'
FORBIDDEN: Final = f"403 Forbidden: {SAID}"
PODS: Final = "/api/v1/namespaces/vms/pods"


@pytest.fixture
def stored() -> list[Object]:
    """VM `db` on node-b, its volume, and no share-manager pod."""
    return [*cold_start.cluster(), a_volume(), a_class()]


DENIED_ROWS: Final = {
    "VMs": (
        PODS,
        "unchanged",
        "VolumeLookupFailed",
        f"the VMs in namespace vms are known only from attachment tickets: {FORBIDDEN}",
    ),
    "volumes": (
        "/api/v1/persistentvolumes",
        "unchanged",
        "VolumeLookupFailed",
        (
            "not derived: what the StorageClass of PersistentVolume pvc-disk adds (topology, node selector, "
            f"tolerations): {FORBIDDEN}"
        ),
    ),
    "tickets": (
        f"{LONGHORN}/volumeattachments",
        "preferred",
        "ConsumerOnNode",
        f"the volume's attachment tickets could not be read: {FORBIDDEN}",
    ),
    "nodes": (
        "/api/v1/nodes",
        "preferred",
        "ConsumerOnNode",
        (
            "only the nodes of the VMs are shown, and no short list of nodes, because the nodes could not be listed: "
            f"{FORBIDDEN}"
        ),
    ),
    "the StorageClass": (
        "/apis/storage.k8s.io/v1/storageclasses",
        "preferred",
        "ConsumerOnNode",
        f"not derived: what StorageClass longhorn adds (topology, node selector, tolerations): {FORBIDDEN}",
    ),
    "settings": (
        f"{LONGHORN}/settings",
        "preferred",
        "ConsumerOnNode",
        f"not derived: what Longhorn's setting taint-toleration adds: {FORBIDDEN}",
    ),
    "its pod": (
        "/api/v1/namespaces/longhorn-system/pods",
        "preferred",
        "ConsumerOnNode",
        f"the current pods could not be read: {FORBIDDEN}",
    ),
}


@pytest.mark.parametrize(("path", "decision", "reason", "note"), DENIED_ROWS.values(), ids=DENIED_ROWS)
def test_a_note_has_the_missing_permission(  # noqa: PLR0917 - fixtures and a row
    path: str, decision: str, reason: str, note: str, explain: Explain, api: StaticApi
) -> None:
    """After a 403 explain decides on the other objects, and a note has the API server's words."""
    api.refuse(path, 403, SAID)
    found = explain("volume/pvc-disk").found
    assert (found["decision"], found["reason"]) == (decision, reason)
    assert note in found["notes"]


@pytest.mark.parametrize("path", [PODS, "/api/v1/persistentvolumes", "/api/v1/nodes"])
def test_a_note_says_that_the_webhook_can_read_more(path: str, explain: Explain, api: StaticApi) -> None:
    """A note says so if the decision rests on less than the webhook can read."""
    api.refuse(path, 403, SAID)
    notes = explain("volume/pvc-disk").found["notes"]
    assert any(note.startswith("you may not read every object that explain needs") for note in notes)


def test_vms_that_may_not_be_listed_are_not_known_to_be_none(explain: Explain, api: StaticApi) -> None:
    """JSON has null, and not an empty list, for VMs that are not known."""
    api.refuse(PODS, 403, SAID)
    found = explain("volume/pvc-disk").found
    assert found["volume"]["claims"][0]["vms"] is None


def test_a_restored_volume_may_stay_unknown(explain: Explain, api: StaticApi) -> None:
    """Without the permission for Longhorn's volumes, explain can't find a PersistentVolume of another name."""
    pod = cold_start.created(nodeName="node-a")
    api.objects[f"/api/v1/namespaces/longhorn-system/pods/share-manager-{VOLUME}"] = pod
    del api.objects[f"/api/v1/persistentvolumes/{VOLUME}"]
    api.refuse(f"{LONGHORN}/volumes", 403, SAID)
    found = explain(f"pod/share-manager-{VOLUME} -n longhorn-system").found
    assert found["reason"] == "VolumeUnclaimed"
    assert f"a PersistentVolume with another name than {VOLUME} could not be looked for: {FORBIDDEN}" in found["notes"]


def test_a_volume_that_may_not_be_read_is_refused(explain: Explain, api: StaticApi) -> None:
    """Explain needs the object that the user names: exit code 2, and the permission."""
    api.refuse(f"{LONGHORN}/volumes", 403, SAID)
    ran = explain("volume/pvc-disk")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: volume/pvc-disk: {FORBIDDEN} ({api.origin}, namespace longhorn-system); ")
