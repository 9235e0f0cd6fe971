"""Facts: what `reunite` watches of a cluster, and the Situation that it makes of it.

Invariant: there is a Situation only if every cache is fresh, so nothing is done because of old facts. Only the cache of
VirtualMachines can be missing.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from webhook.component_base.client.api import Api
from webhook.component_base.client.errors import ApiError
from webhook.core.api.node import Node
from webhook.core.observe.vm_status import VMStatus
from webhook.core.opt_in import Policy
from webhook.core.placement.replica_share import OWN_NAMESPACE
from webhook.core.reunite.decide import VM, Situation
from webhook.core.reunite.drains import drained
from webhook.core.reunite.limits import KubeVirtLimits, ReuniteLimits
from webhook.core.view import Kind
from webhook.kube import reader
from webhook.kube.cache.cached_view import CachedView
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.cache.readiness import CacheState, cache_state
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.informer.reflector import Reflector
from webhook.kube.vm_status import VMStatusTracker
from webhook.objects.kinds import KUBEVIRT
from webhook.plan.live_planner import Planner
from webhook.plan.planner import VERSION
from webhook.reunite.kinds import MIGRATIONS, admission_resources
from webhook.reunite.vmis import VMIRecord

_KUBEVIRT_SECONDS: Final = 60.0  # an administrator changes the configuration by hand


class StaleFacts(Struct, frozen=True):
    """Why there is no Situation now: a sentence for each cache that is not up to date."""

    problems: tuple[str, ...]


class Facts:
    """What is watched of one cluster. `cluster` has what an admission reads."""

    def __init__(self, api: Api, policy: Policy, limits: ReuniteLimits) -> None:
        longhorn_namespace = policy.longhorn_namespace
        own_namespace = (api.namespace if api.in_pod else None) or OWN_NAMESPACE
        kinds = admission_resources(longhorn_namespace, own_namespace)
        self.cluster = ClusterCache(api, longhorn_namespace=longhorn_namespace, kinds=kinds)
        self.known = CachedView(self.cluster.caches)
        self._api, self._limits = api, limits
        self._migrations = ListWatch(MIGRATIONS, random=random.random, streams=True)
        self._tracker = VMStatusTracker(self.cluster.caches, policy)
        self._drained: frozenset[str] = frozenset()
        self._kubevirt = KubeVirtLimits(version=None)
        self._kubevirt_at: float | None = None

    def reflectors(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Return the work that keeps the caches up to date, by cache."""
        own = Reflector(self._api, self._migrations).run()
        return {**self.cluster.reflectors(), self._migrations.resource.title: own}

    def states(self) -> Sequence[CacheState]:
        """Return the state of each cache."""
        now = asyncio.get_running_loop().time()
        return [*self.cluster.states(), cache_state(self._migrations, now)]

    async def situation(self, now: float) -> Situation | StaleFacts:
        """Return the cluster at `now` (seconds since 1970), or which caches are not up to date.

        The caches are asked before and after the rows are computed: a cache has objects before its list is complete,
        and can become up to date meanwhile.
        """
        if late := self._late():
            return StaleFacts(late)
        await self._read_kubevirt()
        await self._tracker.refresh()
        if late := self._late():
            return StaleFacts(late)
        vmis: Mapping[str, VMIRecord] = self.cluster.caches[Kind.VIRTUAL_MACHINE_INSTANCE].objects
        vms = [
            _vm(row, vmi)
            for row in self._tracker.snapshot.rows
            if (vmi := vmis.get(f"{row.namespace}/{row.name}")) is not None
        ]
        migrations = list(self._migrations.objects.values())
        nodes: Mapping[str, Node] = self.cluster.caches[Kind.NODE].objects
        self._drained = drained(migrations, nodes, self._drained)
        return Situation(
            now=now,
            vms=vms,
            migrations=migrations,
            kubevirt=self._kubevirt,
            limits=self._limits,
            nodes_of={_names(key): record.node for key, record in vmis.items() if record.node},
            nodes=nodes,
            drained=self._drained,
        )

    def planner(self) -> Planner:
        """Return a planner that evaluates nodes by what is watched."""
        return Planner(self._api, self.known, self.cluster)

    def has_migration(self, namespace: str, name: str) -> bool:
        """Whether the watch has shown a migration of this name."""
        return f"{namespace}/{name}" in self._migrations.objects

    def vmi_uid(self, namespace: str, name: str) -> str:
        """Return the uid of a VirtualMachineInstance; empty if it does not exist."""
        record = self._vmi(namespace, name)
        return (record.uid if record else None) or ""

    def vmi_memory_bytes(self, namespace: str, name: str) -> int:
        """Return the guest memory of a VirtualMachineInstance; 0 if it is not known."""
        record = self._vmi(namespace, name)
        return record.memory_bytes if record else 0

    def _vmi(self, namespace: str, name: str) -> VMIRecord | None:
        return self.cluster.caches[Kind.VIRTUAL_MACHINE_INSTANCE].objects.get(f"{namespace}/{name}")

    def _late(self) -> tuple[str, ...]:
        late = (each for each in self.states() if not each.fresh and not self._can_do_without(each))
        return tuple(f"{each.title}: {each.detail}" for each in late)

    def _can_do_without(self, state: CacheState) -> bool:
        """Whether this is the cache of VirtualMachines, and can't be filled: that right is not required."""
        title = self.cluster.caches[Kind.VIRTUAL_MACHINE].resource.title
        return state.title == title and state.heard_seconds is None and any(state.causes.values())

    async def _read_kubevirt(self) -> None:
        """Read KubeVirt's version and limits, once a minute. What can't be read is not known."""
        now = asyncio.get_running_loop().time()
        if self._kubevirt_at is not None and now < self._kubevirt_at + _KUBEVIRT_SECONDS:
            return
        self._kubevirt_at = now
        try:
            found = await reader.get(self._api, KUBEVIRT.path("", ""))
        except ApiError:
            found = {}
        self._kubevirt = kubevirt_limits(found)


def kubevirt_limits(found: Mapping[str, Any]) -> KubeVirtLimits:
    """Return the version and limits that a list of KubeVirt objects (kubevirt.io/v1 KubeVirt) shows."""
    kubevirt: Mapping[str, Any] = next(iter(found.get("items") or []), {})
    version = VERSION.match(str((kubevirt.get("status") or {}).get("observedKubeVirtVersion") or ""))
    configuration = (kubevirt.get("spec") or {}).get("configuration") or {}
    chosen = configuration.get("migrations") or {}
    usual = KubeVirtLimits(version=None)
    return KubeVirtLimits(
        version=(int(version[1]), int(version[2])) if version else None,
        parallel_per_cluster=_number(chosen.get("parallelMigrationsPerCluster"), usual.parallel_per_cluster),
        parallel_outbound_per_node=_number(
            chosen.get("parallelOutboundMigrationsPerNode"), usual.parallel_outbound_per_node
        ),
    )


def _names(key: str) -> tuple[str, str]:
    namespace, _, name = key.partition("/")
    return namespace, name


def _number(value: object, usual: int) -> int:
    return value if isinstance(value, int) and value >= 0 else usual


def _vm(row: VMStatus, vmi: VMIRecord) -> VM:
    return VM(
        row=row,
        started=vmi.started,
        phase=vmi.phase,
        reunite=vmi.reunite,
        unmigratable=vmi.unmigratable,
        evacuates=vmi.evacuates,
    )
