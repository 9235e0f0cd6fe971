"""Where the API server has each kind."""

from __future__ import annotations

import pytest
from support.fakes.watching import RESOURCES

from webhook.core.api.meta import NamespacedName
from webhook.core.view import Kind
from webhook.kube.kinds import resources

LONGHORN = "/apis/longhorn.io/v1beta2/namespaces/longhorn-system"
KUBEVIRT = "/apis/kubevirt.io/v1"
PATHS = {
    Kind.PERSISTENT_VOLUME_CLAIM: (
        "/api/v1/persistentvolumeclaims",
        "/api/v1/namespaces/vms/persistentvolumeclaims/disk",
    ),
    Kind.PERSISTENT_VOLUME: ("/api/v1/persistentvolumes", "/api/v1/persistentvolumes/disk"),
    Kind.NODE: ("/api/v1/nodes", "/api/v1/nodes/disk"),
    Kind.SHARE_MANAGER: (f"{LONGHORN}/sharemanagers", f"{LONGHORN}/sharemanagers/disk"),
    Kind.LONGHORN_NODE: (f"{LONGHORN}/nodes", f"{LONGHORN}/nodes/disk"),
    Kind.SHARE_MANAGER_POD: (
        "/api/v1/namespaces/longhorn-system/pods",
        "/api/v1/namespaces/longhorn-system/pods/disk",
    ),
    Kind.VIRT_LAUNCHER_POD: ("/api/v1/pods", "/api/v1/namespaces/vms/pods/disk"),
    Kind.VOLUME_ATTACHMENT: (f"{LONGHORN}/volumeattachments", f"{LONGHORN}/volumeattachments/disk"),
    Kind.NAMESPACE: ("/api/v1/namespaces", "/api/v1/namespaces/disk"),
    Kind.CLUSTER_AUTOSCALER_STATUS: ("/api/v1/configmaps", "/api/v1/namespaces/vms/configmaps/disk"),
    Kind.VIRTUAL_MACHINE: (f"{KUBEVIRT}/virtualmachines", f"{KUBEVIRT}/namespaces/vms/virtualmachines/disk"),
    Kind.VIRTUAL_MACHINE_INSTANCE: (
        f"{KUBEVIRT}/virtualmachineinstances",
        f"{KUBEVIRT}/namespaces/vms/virtualmachineinstances/disk",
    ),
    Kind.CSI_NODE: ("/apis/storage.k8s.io/v1/csinodes", "/apis/storage.k8s.io/v1/csinodes/disk"),
}
IN_ANY_NAMESPACE = (
    Kind.PERSISTENT_VOLUME_CLAIM,
    Kind.VIRT_LAUNCHER_POD,
    Kind.CLUSTER_AUTOSCALER_STATUS,
    Kind.VIRTUAL_MACHINE,
    Kind.VIRTUAL_MACHINE_INSTANCE,
)


@pytest.mark.parametrize("kind", RESOURCES)
def test_paths(kind: Kind) -> None:
    """List and watch are cluster-wide, or of Longhorn's namespace. The path of an object is below."""
    resource = RESOURCES[kind]
    key = NamespacedName("vms" if kind in IN_ANY_NAMESPACE else "", "disk")
    assert (resource.collection, resource.item(key)) == PATHS[kind]


def test_a_name_can_not_leave_its_place_in_a_path() -> None:
    """A name with any characters is one segment of the path."""
    assert RESOURCES[Kind.NODE].item(NamespacedName("", "../a?b#c%2f")) == "/api/v1/nodes/..%2Fa%3Fb%23c%252f"


def test_every_kind_that_core_reads_is_read_from_somewhere() -> None:
    """Each kind has a resource, except the pods of one node: they are listed as virt-launcher pods."""
    assert set(Kind) - RESOURCES.keys() == {Kind.VIRT_LAUNCHERS_ON_NODE}
    assert [kind for kind, resource in RESOURCES.items() if not resource.watched] == [Kind.VOLUME_ATTACHMENT]


def test_longhorns_namespace_is_the_operators_choice() -> None:
    """Longhorn's kinds are read from that namespace only."""
    elsewhere = {resource.kind: resource.collection for resource in resources("storage")}
    assert elsewhere[Kind.SHARE_MANAGER] == "/apis/longhorn.io/v1beta2/namespaces/storage/sharemanagers"
    assert elsewhere[Kind.SHARE_MANAGER_POD] == "/api/v1/namespaces/storage/pods"
    assert elsewhere[Kind.NODE] == "/api/v1/nodes"
