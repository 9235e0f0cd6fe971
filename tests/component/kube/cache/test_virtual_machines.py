"""VirtualMachines and VirtualMachineInstances: what their caches answer, and that nothing waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from support.drivers import serving
from support.fakes.api_server import ApiServer, Cluster, refusing, saying, until
from support.fakes.http_line import Asked
from support.fakes.live import (
    PATHS,
    RESOURCES,
    answered,
    cluster_of,
    gets,
    listed,
    now,
    put,
    ref,
    running,
)
from support.models.model_api import event
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance
from support.objects.builders_pods import pod
from support.waits import MAX_WAIT_SECONDS

from webhook.app.live_cluster import _cache_check
from webhook.core import refs
from webhook.core.api.meta import NamespacedName
from webhook.core.view import USERS_MAX, Kind, NoObject
from webhook.kube.cache.cached_view import CachedView
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.cache.view import CallView

VM, VMI = Kind.VIRTUAL_MACHINE, Kind.VIRTUAL_MACHINE_INSTANCE
DB = NamespacedName(builders.NAMESPACE, "db01")
DISK = NamespacedName(builders.NAMESPACE, "disk")
UNKNOWN = (NoObject.UNAVAILABLE,) * 2


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes, a share-manager on node-a, and no VM."""
    found = cluster_of(*serving.cluster())
    for kind in (VM, VMI):
        found.collections[PATHS[kind]].remove("db01", builders.NAMESPACE)
    return found


def vms_of(view: CallView) -> Sequence[str]:
    """The VMs of the disk."""
    return view.users_of("pvc-disk", DISK).vms


def asked_of(view: Any) -> tuple[Any, ...]:
    """What a view answers about the VM, its instance, and the VMs of its disk."""
    return (
        view.get(refs.virtual_machine(DB)),
        view.get(refs.virtual_machine_instance(DB)),
        view.users_of("pvc-disk", DISK).vms,
    )


async def test_what_fresh_caches_have_needs_no_request(
    store: ClusterCache, cluster: Cluster, server: ApiServer
) -> None:
    """The VM with its failed starts, its instance with its uid, and each VM of a claim once."""
    async with running(store):
        await put(store, cluster, VM, virtual_machine(start_failures=2), virtual_machine("stopped"))
        await put(store, cluster, VMI, virtual_machine_instance(uid="u-1"), virtual_machine_instance("alone", vm=None))
        vm, vmi, vms = asked_of(store.view())
        assert asked_of(CachedView(store.caches)) == (vm, vmi, vms)
    assert (vm.start_failures, vmi.metadata.uid, vmi.virtual_machine) == (2, "u-1", "db01")
    assert vms == ["alone", "db01", "stopped"]
    assert gets(server) == []


async def test_what_a_fresh_cache_lacks_is_read_once(store: ClusterCache, cluster: Cluster, server: ApiServer) -> None:
    """The watch can be behind the pod under admission."""
    async with running(store):
        view = store.view()
        assert asked_of(view) == (NoObject.UNAVAILABLE, NoObject.UNAVAILABLE, [])
        await put(store, cluster, VMI, virtual_machine_instance(uid="u-1"))
        assert list(view.missing) == [refs.virtual_machine(DB), refs.virtual_machine_instance(DB)]
        vm, vmi, _ = asked_of(await store.read(view, tuple(view.missing), now() + MAX_WAIT_SECONDS))
    assert (vm, vmi.metadata.uid) == (NoObject.NOT_FOUND, "u-1")
    assert len(gets(server)) == 2


def of_a_vm(asked: Asked) -> bool:
    """Whether a request is for a kind of KubeVirt."""
    return "/kubevirt.io/" in asked.path


NOT_INSTALLED = saying(404, b"404 page not found\n")


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (refusing(403, "Forbidden", "no right"), "OwnerLookupFailed"),
        (refusing(500, "InternalError"), "OwnerLookupFailed"),
        (NOT_INSTALLED, "OwnerNotFound"),
    ],
)
async def test_where_they_can_not_be_listed_they_are_unknown_and_nothing_waits(
    refusal: Any, reason: str, store: ClusterCache, cluster: Cluster, server: ApiServer
) -> None:
    """The pod stays unchanged, a replica is ready, and only the instance is read live, once."""
    titles = [RESOURCES[kind].title for kind in (VM, VMI)]
    with cluster.fault(refusal, when=of_a_vm):
        async with running(store, without=titles):
            await until(lambda: all(store.caches[kind].problem != "not listed yet" for kind in (VM, VMI)))
            assert asked_of(store.view()) == asked_of(CachedView(store.caches)) == (*UNKNOWN, [])
            assert store.view().read_error(ref(VMI, *reversed(DB))) == store.caches[VMI].problem
            answer, _ = await answered(store, builders.virt_launcher_pod(claims=["disk"]))
            assert (answer.audit_annotations["decision"], answer.audit_annotations["reason"]) == ("unchanged", reason)
            assert len(gets(server)) == 1
            for state in store.states():
                assert not _cache_check(state, starting=True).gates or state.title not in titles


async def test_a_kind_that_is_installed_later_is_known_from_then_on(store: ClusterCache) -> None:
    """Before, its cache is up to date and empty, and an object of it would be read live for nothing."""
    cache, at = store.caches[VM], now()
    cache.next(at)
    cache.opened(404, None, at)
    cache.feed(b"404 page not found\n", at)
    cache.ended(at)
    assert cache.fresh(at)
    assert store.view().get(refs.virtual_machine(DB)) is NoObject.UNAVAILABLE
    later = at + 3600
    listed(cache, virtual_machine(), at=later)
    assert CallView(store.caches, later, {}).get(refs.virtual_machine(DB)) == CachedView(store.caches).get(
        refs.virtual_machine(DB)
    )
    assert vms_of(CallView(store.caches, later, {})) == ["db01"]


async def test_a_first_list_in_progress_shows_no_vm(store: ClusterCache) -> None:
    """Its index has the VM before the cache does."""
    cache, at = store.caches[VM], now()
    cache.next(at)
    cache.opened(200, None, at)
    described = virtual_machine()
    cache.feed(event("ADDED", {**described, "metadata": {**described["metadata"], "resourceVersion": "5"}}), at)
    assert len(store.caches.keys_of(VM, "vms/disk")) == 1
    assert store.view().users_of("pvc-disk", DISK).vms == []


async def test_old_lists_are_not_known_to_an_admission(store: ClusterCache) -> None:
    """They still are to `status`, as all that was seen."""
    listed(store.caches[VM], virtual_machine(), at=now() - 60)
    listed(store.caches[VMI], virtual_machine_instance(), at=now() - 60)
    assert asked_of(store.view()) == (*UNKNOWN, ["db01"])
    assert store.view().users_of("pvc-disk", DISK).unknown == "virtualmachines.kubevirt.io: not up to date"
    assert asked_of(CachedView(store.caches))[2] == ["db01"]


async def test_a_pod_whose_volumes_are_too_long_can_use_any_claim_of_its_namespace(store: ClusterCache) -> None:
    """Who else uses the claim is not known while there is such a pod."""
    for kind in (VM, VMI, Kind.PERSISTENT_VOLUME):
        listed(store.caches[kind], at=now())
    many = pod("web", node="node-a", claims=[f"disk-{number:0200}" for number in range(400)])
    listed(store.caches[Kind.VIRT_LAUNCHER_POD], many, at=now())
    assert store.view().users_of("pvc-disk", DISK).unknown == "the volumes of pod web are too long to be read"
    assert store.view().users_of("pvc-disk", NamespacedName("elsewhere", "disk")).unknown == ""


async def test_one_kind_names_some_vms_of_a_claim(store: ClusterCache) -> None:
    """There can be more, which is a reason to be careful."""
    listed(store.caches[VMI], virtual_machine_instance(vm="owner"), at=now())
    users = store.view().users_of("pvc-disk", DISK)
    assert (users.vms, users.unknown) == (["owner"], "virtualmachines.kubevirt.io: not listed yet")
    assert store.view().get(refs.virtual_machine(DB)) is NoObject.UNAVAILABLE


async def test_of_many_vms_of_a_claim_some_are_named(store: ClusterCache) -> None:
    """An admission does not take longer because thousands of VMs share a claim."""
    listed(store.caches[VM], *(virtual_machine(f"vm-{number}") for number in range(2 * USERS_MAX)), at=now())
    assert len(vms_of(store.view())) == USERS_MAX
