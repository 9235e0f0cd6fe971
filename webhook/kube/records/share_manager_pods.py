"""Share-manager pods: what is kept of one."""

from __future__ import annotations

from msgspec import Struct

from webhook.core.api.longhorn import (
    LABEL_LONGHORN_COMPONENT,
    SHARE_MANAGER_POD_PREFIX,
)
from webhook.core.api.meta import ObjectMeta
from webhook.core.api.pod import Pod, PodSpec, PodStatus
from webhook.kube.client.metadata import WireMeta
from webhook.kube.records.pod_status import build_status, placed_at
from webhook.kube.records.shared import share


class _WirePodSpec(Struct, rename="camel", gc=False):
    node_name: str | None = None


class WireShareManagerPod(Struct, gc=False):
    """A share-manager pod."""

    metadata: WireMeta
    spec: _WirePodSpec | None = None
    status: PodStatus | None = None


class _PodRest(Struct, frozen=True, gc=False):
    labels: dict[str, str] | None
    deletion_timestamp: str | None
    node_name: str | None
    phase: str | None


class _Pod(Struct, frozen=True, gc=False):
    placed_at: str | None
    rest: _PodRest


def keep_pod(wire: WireShareManagerPod) -> _Pod:
    """Record."""
    meta, labels = wire.metadata, wire.metadata.labels or {}
    component = labels.get(LABEL_LONGHORN_COMPONENT)
    rest = _PodRest(
        None if component is None else {LABEL_LONGHORN_COMPONENT: component},
        meta.deletion_timestamp,
        wire.spec.node_name if wire.spec else None,
        wire.status.phase if wire.status else None,
    )
    return _Pod(placed_at(wire.status), share(rest))


def pod_key(name: str) -> str:
    """The volume of a pod that is called share-manager-VOLUME; /NAME, which is no volume's name, of any other pod."""
    volume = name.removeprefix(SHARE_MANAGER_POD_PREFIX)
    return f"/{name}" if volume == name else volume


def build_pod(key: str, pod: _Pod) -> Pod:
    """Object."""
    name, rest = key[1:] if key.startswith("/") else SHARE_MANAGER_POD_PREFIX + key, pod.rest
    return Pod(
        metadata=ObjectMeta(name=name, labels=rest.labels, deletion_timestamp=rest.deletion_timestamp),
        spec=PodSpec(node_name=rest.node_name),
        status=build_status(rest.phase, pod.placed_at),
    )
