"""What a pod requests of a node, as it is on the wire: its containers with requests, and what their status names.

The structs alone; `webhook.core.scheduler.state.pod_requests` adds the requests up. PodSpec inherits from `Workload`.
Quantities are parsed later and one by one, so that a wrong one does not lose the pod.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from msgspec import Struct

Quantities = dict[str, Any]
"""A v1.ResourceList: name -> quantity; text as API servers write it, or a number from a file."""


class ResourceRequirements(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.ResourceRequirements: what one container requests, and its limits."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class ContainerPort(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.ContainerPort: the port of the node that it takes."""

    host_port: int | None = None


class VolumeMount(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.VolumeMount: the field that needs a feature of the node."""

    bind_mount_options: list[Any] | None = None


class Container(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.Container; an init container whose restartPolicy is Always is a sidecar."""

    name: str | None = None
    image: str | None = None
    args: list[str] | None = None
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[Any] | None = None
    volume_mounts: list[VolumeMount] | None = None

    def option(self, name: str) -> str | None:
        """Return the argument that follows `name`, None if there is none."""
        args = self.args or []
        return next((value for flag, value in pairwise(args) if flag == name), None)

    @property
    def restarts(self) -> bool:
        """Whether an init container keeps running beside the containers: a sidecar."""
        return self.restart_policy == "Always"


class Workload(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """The part of v1.PodSpec that takes resources of a node."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None


class Actuated(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """The v1.ResourceRequirements of a status: what the kubelet has applied."""

    requests: Quantities | None = None


class ContainerStateWaiting(Struct, frozen=True, gc=False):
    """v1.ContainerStateWaiting: why a container does not run yet, such as ContainerCreating."""

    reason: str | None = None


class ContainerState(Struct, frozen=True, gc=False):
    """v1.ContainerState: the state of a container that waits."""

    waiting: ContainerStateWaiting | None = None


class ContainerStatus(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.ContainerStatus: the fields that show an in-place resize, and why a container waits."""

    name: str | None = None
    state: ContainerState | None = None
    resources: Actuated | None = None
    allocated_resources: Quantities | None = None


class PodCondition(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """v1.PodCondition. `last_transition_time` is when `status` last changed, RFC 3339."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
