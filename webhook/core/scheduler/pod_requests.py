"""What one pod takes of a node: an estimate of its requests that is never too low.

kube-scheduler counts a pod by rules that change with its version: restartable init containers, pod-level resources,
and what is reported of a resize. Here the largest amount counts that spec or status name, resource by resource.
webhook.core.scheduler.cache adds the usages of a node up. Invariants: no version of kube-scheduler counts
more than this for a pod; nothing here raises; an amount that can't be read counts as more than any node has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from webhook.core.api.container import UNREADABLE, ContainerRequests, ContainerStatus, Workload, amounts, units
from webhook.core.api.pod import PodStatus

CPU: Final = "cpu"
PODS: Final = "pods"
_BASIC: Final = (CPU, "memory", "ephemeral-storage")
_OVER: Final = ("Succeeded", "Failed")

_Amounts = dict[str, int]  # resource -> thousandths


class Usage(Struct, frozen=True, weakref=True):
    """What a pod takes of a node, besides 1 of the number of pods.

    `requests` are resources with their amounts: milli-CPU or whole units, rounded up once for the pod, by name and
    without zeros: kube-scheduler checks only the resources that a pod requests.
    """

    requests: tuple[tuple[str, int], ...] = ()


def is_over(phase: str | None) -> bool:
    """Whether a pod in this phase counts nowhere any more.

    A pod that is being deleted counts on its node until it is gone (pkg/scheduler/eventhandlers.go, assignedPod; its
    informer selects status.phase!=Succeeded,status.phase!=Failed).
    """
    return phase in _OVER


def usage(spec: Workload, status: PodStatus | None = None) -> Usage:
    """Return what a pod takes at most (component-helpers resource/helpers.go, PodRequests).

    A container that ends before the others start takes nothing beside them. Those that run on take their amounts from
    then on, and here from the beginning. Validation lets no pod-level request be below the sum of its containers. What
    a pod gets of CPU or memory by claims of devices is not read: it counts as more than any node has.
    """
    total: _Amounts = {}
    initial: _Amounts = {}
    beside: _Amounts = {}
    statuses: Mapping[str | None, ContainerStatus] = {}
    if status:
        reported = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        statuses = {each.name: each for each in reported}
    for container in spec.containers or ():
        _add(total, _requests(container, statuses))
    for container in spec.init_containers or ():
        if container.restarts:
            _add(beside, _requests(container, statuses))
        else:
            _raise(initial, _requests(container, statuses))
    _raise(total, initial)
    _add(total, beside)
    _raise(total, amounts(spec.resources.requests if spec.resources else None))
    if status:
        _raise_to_status(total, status)
    _add(total, amounts(spec.overhead))
    if status and status.node_allocatable_resource_claim_statuses:  # Kubernetes 1.36 and 1.37 name them differently
        total |= dict.fromkeys((CPU, "memory"), UNREADABLE)
    counted = ((name, amount if name == CPU else units(amount)) for name, amount in total.items() if is_counted(name))
    return Usage(tuple(sorted((name, amount) for name, amount in counted if amount)))


def _requests(container: ContainerRequests, statuses: Mapping[str | None, ContainerStatus]) -> _Amounts:
    """Return the largest amounts of one container. Without a request its limit counts (defaults.go, SetDefaults_Pod).

    kube-apiserver writes that default. A file may not have it yet.
    """
    resources = container.resources
    most = amounts(resources.limits) | amounts(resources.requests) if resources else {}
    status = statuses.get(container.name)
    if status is not None:
        _raise_to_status(most, status)
    return most


def _raise_to_status(most: _Amounts, status: PodStatus | ContainerStatus) -> None:
    """Raise the amounts to those that are in effect, and to those that kubelet has admitted."""
    _raise(most, amounts(status.resources.requests if status.resources else None))
    _raise(most, amounts(status.allocated_resources))


def is_counted(resource: str) -> bool:
    """Whether the scheduler counts this resource (pkg/scheduler/framework/types.go, Resource.Add).

    CPU, memory, ephemeral storage, and every scalar resource: huge pages, attachable volumes, names with
    kubernetes.io/, and extended resources (pkg/apis/core/v1/helper/helpers.go), whose names
    have a prefix that is not that of quotas.
    """
    if resource in _BASIC or resource.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return "kubernetes.io/" in resource or ("/" in resource and not resource.startswith("requests."))


def _add(total: _Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(most: _Amounts, other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        most[name] = max(most.get(name, 0), amount)
