"""PodIndex: the index of all pods of the cluster. It counts them in a SchedulerCache, together with the assumed pods.

A record has what is needed to stop counting its pod. Invariant: `scheduler_cache` is the sum of the records and of the
assumed pods.

An unbound virt-launcher pod counts only while its VirtualMachineInstance exists, by its record, and as the only unbound
pod of that. An unbound share-manager pod counts in Longhorn's namespace. The cache of VirtualMachineInstances says when
one comes or goes (`recount`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from sys import maxsize
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api import kubevirt
from webhook.core.api.pod import Pod
from webhook.core.scheduler.cache import SchedulerCache
from webhook.core.scheduler.pod_info import PodInfo
from webhook.kube.informer.store import Indexer
from webhook.kube.records.pods import ClaimUser, PodRecord
from webhook.kube.records.virt_launchers import vm_key, vmi_uid

CREATE_HELD_SECONDS: Final = 34.0
"""The longest that an API server holds a CREATE (staging apiserver pkg/endpoints/handlers/rest.go,
requestTimeoutUpperBound): other webhooks can take that long after this one. Then the pod exists, or never will.

Nothing tells that a call ended earlier. An API server that did not wait for the answer admits the pod without it, and a
watch shows that pod. If the CREATE failed, virt-controller creates another pod. Both replace what was assumed."""


ANY_NUMBER: Final = maxsize
"""Of nodes: it is not known how many claims the VirtualMachineInstance has, or whether it exists."""


class _Start(Struct):
    """The unbound pods of one VirtualMachineInstance, by cache key. Only the first of them counts."""

    pods: dict[str, tuple[PodInfo, ...]]
    counted: tuple[PodInfo, ...] = ()


class PodIndex:
    """An Index of all pods. Of each it stores only the requests, the required anti-affinity and the VM.

    The docstring of webhook.core.scheduler.cache has the states of a pod. This class changes the state:
    `assume`, `put` (confirm) and `forget` (forget, expire).

    Attributes:
        scheduler_cache: counts the pods.
        virt_launchers: the virt-launcher pods by cache key.
        claim_users: the other pods that have claims, by cache key.
        by_claim: the keys of both by the claims that they have.
        replicas: the cache keys of the webhook's own pods.
    """

    def __init__(
        self,
        namespace: str = "",
        longhorn_namespace: str = "",
        nodes_max: Callable[[str, str | None], int] = lambda _vmi, _uid: ANY_NUMBER,
    ) -> None:
        """`namespace` is that of the webhook's own pods.

        `nodes_max` returns on how many nodes an unbound pod of a VirtualMachineInstance, NAMESPACE/NAME and uid, may
        count: 0 if there is none.
        """
        self.scheduler_cache = SchedulerCache()
        self.virt_launchers: dict[str, Pod] = {}
        self.claim_users: dict[str, ClaimUser] = {}
        self.by_claim = Indexer(lambda _, record: record.claims)
        self.replicas: set[str] = set()
        self._namespace, self._longhorn_namespace = namespace, longhorn_namespace
        self._nodes_max = nodes_max
        self._assumed: dict[Hashable, tuple[PodInfo, ...]] = {}
        self._starts: dict[tuple[str, str | None], _Start] = {}

    def put(self, key: str, old: PodRecord | None, new: PodRecord) -> PodRecord:
        """Count a pod as a watch has just shown it, and no longer as the watch showed it before."""
        if new.by_record and new.virt_launcher is None and new.pod_infos[0].namespace != self._longhorn_namespace:
            new = replace(new, counted=())  # anybody may create such a pod, and each of its nodes costs memory
        if old is not None:
            if old == new:
                return old
            self.drop(key, old)
        virt_launcher = new.virt_launcher
        if virt_launcher is not None:
            self.virt_launchers[key] = virt_launcher
            vmi = vm_key(virt_launcher), vmi_uid(virt_launcher)
            if new.by_record:
                self._starts.setdefault(vmi, _Start({})).pods[key] = new.pod_infos
                self.recount(*vmi)
            elif old is None or old.by_record or not old.pod_infos:
                # The other pod of a live migration belongs to the same VM. It was bound before.
                self._confirm(*vmi)
        if new.claim_user is not None:
            self.claim_users[key] = new.claim_user
        if new.claims:
            self.by_claim.put(key, None, new)
        if new.replica and new.pod_infos[0].namespace == self._namespace:
            self.replicas.add(key)
        for pod_info in _by_itself(new):
            self.scheduler_cache.add(pod_info)
        return new

    def drop(self, key: str, old: PodRecord) -> None:
        """Stop counting a pod."""
        self.replicas.discard(key)
        if old.virt_launcher is not None:
            del self.virt_launchers[key]
            vmi = vm_key(old.virt_launcher), vmi_uid(old.virt_launcher)
            start = self._starts.get(vmi)
            if start is not None and key in start.pods:
                del start.pods[key]
                self.recount(*vmi)
        self.claim_users.pop(key, None)
        if old.claims:
            self.by_claim.drop(key, old)
        for pod_info in _by_itself(old):
            self.scheduler_cache.remove(pod_info)

    def users_of(self, claim: str, most: int) -> dict[str, str]:
        """Return the names of the pods that have this claim, `most` at most, each with its VM as in VolumeUsers."""
        return {key.partition("/")[2]: self._vmi_of(key) for key in islice(self.by_claim.index_keys(claim), most)}

    def _vmi_of(self, key: str) -> str:
        other = self.claim_users.get(key)
        virt_launcher = self.virt_launchers.get(other.attached_to if other else key)
        owner = kubevirt.owner(virt_launcher) if virt_launcher else None
        return (owner.name if owner else None) or ""

    def recount(self, vmi: str, uid: str | None) -> None:
        """Count one unbound pod of a VirtualMachineInstance, NAMESPACE/NAME and uid, while that exists."""
        start = self._starts.get((vmi, uid))
        if start is None:
            return
        nodes_max = self._nodes_max(vmi, uid)
        counted = next(iter(start.pods.values()), ())[:nodes_max]
        if counted != start.counted:
            if counted:
                self._confirm(vmi, uid)
            for pod_info in start.counted:
                self.scheduler_cache.remove(pod_info)
            start.counted = counted
            for pod_info in counted:
                self.scheduler_cache.add(pod_info)
        if not start.pods:
            del self._starts[vmi, uid]

    def recount_all(self) -> None:
        """Count the unbound pods of all VirtualMachineInstances that exist."""
        for vmi in tuple(self._starts):
            self.recount(*vmi)

    def _confirm(self, vmi: str, uid: str | None) -> None:
        """Stop counting the assumed pod of a VirtualMachineInstance, because watches have shown both."""
        owner: Hashable = vmi.partition("/")[0], uid
        self.forget(owner)

    def assume(self, owner: Hashable, pods: Iterable[PodInfo]) -> tuple[PodInfo, ...]:
        """Count a pod that is being created, on each of `pods`' nodes. An owner has one assumed pod: the last."""
        self.forget(owner)
        assumed = self._assumed[owner] = tuple(pods)
        for pod_info in assumed:
            self.scheduler_cache.add(pod_info)
        return assumed

    def forget(self, owner: Hashable, only: tuple[PodInfo, ...] | None = None) -> None:
        """Stop counting the owner's assumed pod, if there is one; with `only`, only if it is that pod."""
        assumed = self._assumed.get(owner)
        if assumed is not None and (only is None or only is assumed):
            del self._assumed[owner]
            for pod_info in assumed:
                self.scheduler_cache.remove(pod_info)


def _by_itself(pod: PodRecord) -> tuple[PodInfo, ...]:
    """Return the pod as it counts without its VirtualMachineInstance."""
    return () if pod.virt_launcher is not None and pod.by_record else pod.pod_infos
