"""What one pod takes of a node: its requests and host ports, each as kube-scheduler reads it from the pod.

A pod is reduced once to a `Usage`, which all pods of the same shape can share. webhook.core.scheduler.state.node_info
adds the usages of a node up. Invariant: nothing here raises, and an amount that can't be read counts as more than any
node has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from webhook.core.api.container import Container, ContainerStatus, Workload
from webhook.core.api.meta import LABEL_KEY_MAX_CHARS
from webhook.core.api.pod import PodStatus
from webhook.core.api.quantity import amounts, units

CPU: Final = "cpu"
PODS: Final = "pods"

_BASIC: Final = (CPU, "memory", "ephemeral-storage")
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - the scheduler's DefaultBindAllHostIP; nothing is bound here
_OVER: Final = ("Succeeded", "Failed")

_Amounts = dict[str, int]  # resource -> thousandths; several may share one, so none is changed


class HostPort(NamedTuple):
    """A port of the node that a container takes."""

    protocol: str
    port: int
    address: str

    def clashes(self, other: HostPort) -> bool:
        """Whether one node can't give both (pkg/scheduler/framework/types.go, HostPortInfo.CheckConflict).

        Addresses are compared as they are written; `::` is an address like any other.
        """
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.address == other.address or ANY_ADDRESS in (self.address, other.address)


class Usage(Struct, frozen=True, weakref=True):
    """What a pod takes of a node, besides 1 of the number of pods.

    `requests` are resources with their amounts: milli-CPU or whole units, rounded up once for the pod, by name and
    without zeros: kube-scheduler checks only the resources that a pod requests.
    """

    requests: tuple[tuple[str, int], ...] = ()
    ports: tuple[HostPort, ...] = ()

    def fits(self, allocatable: Mapping[str, int]) -> bool:
        """Whether a node with `allocatable` would have enough for the pod if no other pod was there."""
        has = allocatable.get
        return has(PODS, 0) > 0 and all(amount <= has(name, 0) for name, amount in self.requests)


def is_over(phase: str | None) -> bool:
    """Whether a pod in this phase counts nowhere any more.

    A pod that is being deleted counts on its node until it is gone (pkg/scheduler/eventhandlers.go, assignedPod; its
    informer selects status.phase!=Succeeded,status.phase!=Failed).
    """
    return phase in _OVER


def usage(spec: Workload, status: PodStatus | None = None) -> Usage:
    """Return what a pod takes. A pod without a status is not scheduled yet: it takes what its spec requests.

    As NodeInfo adds a pod up (pkg/scheduler/framework/types.go, CalculateResource and updateUsedPorts) and as
    NodeResourcesFit asks for one (plugins/noderesources/fit.go, computePodResourceRequest).
    """
    asked = _pod_requests(spec, status)
    requests = [
        (name, amount if name == CPU else units(amount))
        for name, amount in asked.items()
        if amount and is_counted(name)
    ]
    requests.sort()
    return Usage(tuple(requests), tuple(_host_ports(spec)))


def is_counted(resource: str) -> bool:
    """Whether the scheduler counts this resource (pkg/scheduler/framework/types.go, Resource.Add).

    CPU, memory, ephemeral storage, and every scalar resource: huge pages, attachable volumes, names with
    kubernetes.io/, and extended resources (pkg/apis/core/v1/helper/helpers.go), whose names
    have a prefix that is not that of quotas.
    """
    return _is_counted(resource[:LABEL_KEY_MAX_CHARS])


@lru_cache(maxsize=1024)
def _is_counted(resource: str) -> bool:
    if resource in _BASIC or resource.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return "kubernetes.io/" in resource or ("/" in resource and not resource.startswith("requests."))


def _pod_requests(spec: Workload, status: PodStatus | None) -> _Amounts:
    """component-helpers resource/helpers.go, PodRequests: the containers' sum, overruled by the pod's own, overhead.

    What a resize changes is counted in another way since Kubernetes 1.37. Where the two ways differ, the larger amount
    counts: 1.37 takes the largest of the pod's sums, and earlier versions the sum of the containers' largest amounts.
    Only 1.37 counts what is reported of the whole pod although the pod has no request of its own, and what is reported
    of an init container.
    """
    total = _containers_requests(spec, status)
    own = amounts(spec.resources.requests if spec.resources else None)
    asked = own
    if status and status.resources:
        reported = _most(amounts(status.resources.requests), amounts(status.allocated_resources))
        total = _most(total, reported)
        asked = reported if _is_infeasible(status) else _most(reported, own)
    total = total | {name: asked[name] for name in own if _is_pod_level(name) and name in asked}
    if spec.overhead:
        total = _sum(total, amounts(spec.overhead))
    return total


def _is_pod_level(resource: str) -> bool:
    return resource in (CPU, "memory") or resource.startswith("hugepages-")


def _containers_requests(spec: Workload, status: PodStatus | None) -> _Amounts:
    """component-helpers resource/helpers.go, AggregateContainerRequests.

    Containers and sidecars run together. Each init container runs beside the sidecars that come before it in the list.
    """
    statuses = _statuses(status)
    total: _Amounts = {}
    for container in spec.containers or ():
        total = _sum(total, _requests(container, statuses, status))
    if spec.init_containers:
        sidecars: _Amounts = {}
        initial: _Amounts = {}
        for container in spec.init_containers:
            asked = _requests(container, statuses, status)
            if container.restarts:
                total = _sum(total, asked)
                sidecars = asked = _sum(sidecars, asked)
            else:
                asked = _sum(_most(asked, _requests(container, {}, None)), sidecars)
            initial = _most(initial, asked)
        total = _most(total, initial)
    for share in (status.node_allocatable_resource_claim_statuses if status else None) or ():
        total = _sum(total, amounts(share.resources))
    return total


def _statuses(status: PodStatus | None) -> Mapping[str | None, ContainerStatus]:
    if status is None:
        return {}
    return {each.name: each for each in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))}


def _requests(
    container: Container, statuses: Mapping[str | None, ContainerStatus], status: PodStatus | None
) -> _Amounts:
    """Return one container's requests. While it is resized: the largest of its actual, allocated and new requests."""
    resources = container.resources
    spec = amounts(resources.requests) if resources else {}
    if resources and resources.limits:  # as kube-apiserver has it (defaults.go, SetDefaults_Pod); a file may not yet
        spec = amounts(resources.limits) | spec
    reported = statuses.get(container.name)
    if reported is None or status is None:
        return spec
    actual = reported.resources.requests if reported.resources else None
    most = _most(amounts(actual), amounts(reported.allocated_resources))
    is_refused = reported.resources is not None and _is_infeasible(status)  # before 1.37 both are needed
    return most if is_refused else _most(most, spec)


def _is_infeasible(status: PodStatus) -> bool:
    """Whether the node can never grant the resize, so that the new request does not count."""
    for condition in status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _host_ports(spec: Workload) -> Iterator[HostPort]:
    """pkg/scheduler/util/utils.go, GetHostPorts: of sidecars and containers."""
    sidecars = (container for container in spec.init_containers or () if container.restarts)
    for container in (*sidecars, *(spec.containers or ())):
        for port in container.ports or ():
            if port.host_port and port.host_port > 0:
                yield HostPort(port.protocol or "TCP", port.host_port, port.host_ip or ANY_ADDRESS)


def _sum(one: _Amounts, other: _Amounts) -> _Amounts:
    if not (one and other):
        return one or other
    total = one.copy()
    for name, amount in other.items():
        total[name] = total.get(name, 0) + amount
    return total


def _most(one: _Amounts, other: _Amounts) -> _Amounts:
    if not (one and other):
        return one or other
    most = one.copy()
    for name, amount in other.items():
        if amount > most.get(name, -1):
            most[name] = amount
    return most
