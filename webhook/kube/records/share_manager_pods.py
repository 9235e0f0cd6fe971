"""Share-manager pods: the record of one, by the volume that it serves."""

from __future__ import annotations

from msgspec import Struct

from webhook.core.api.longhorn import LABEL_LONGHORN_COMPONENT, SHARE_MANAGER_POD_PREFIX
from webhook.core.api.meta import ObjectMeta
from webhook.core.api.pod import Pod, PodSpec, PodStatus
from webhook.core.observe.past_decision import PastDecision, as_annotation
from webhook.kube.records.shared import pod_status, scheduled_at, share
from webhook.kube.records.virt_launchers import WirePodMeta, decision_in


class _WireSpec(Struct, rename="camel", gc=False):
    node_name: str | None = None


class WireShareManagerPod(Struct, gc=False):
    """A share-manager pod, as far as it is decoded."""

    metadata: WirePodMeta
    spec: _WireSpec | None = None
    status: PodStatus | None = None


class _PodCommon(Struct, frozen=True, weakref=True):
    labels: dict[str, str] | None
    deletion_timestamp: str | None
    node_name: str | None
    phase: str | None
    decision: PastDecision | None


class ShareManagerPodRecord(Struct, frozen=True, gc=False):
    """32 bytes a pod, and a time. The pods of one node, phase and decision share the `common` part."""

    scheduled_at: str | None
    common: _PodCommon


def transform(wire: WireShareManagerPod) -> ShareManagerPodRecord:
    """Return the record of a share-manager pod: node, phase, deletion, decision, and since when it has its node."""
    meta, labels = wire.metadata, wire.metadata.labels or {}
    component = labels.get(LABEL_LONGHORN_COMPONENT)
    common = _PodCommon(
        None if component is None else {LABEL_LONGHORN_COMPONENT: component},
        meta.deletion_timestamp,
        wire.spec.node_name if wire.spec else None,
        wire.status.phase if wire.status else None,
        decision_in(meta),
    )
    return ShareManagerPodRecord(scheduled_at(wire.status), share(common))


def pod_key(name: str) -> str:
    """Return the cache key of a pod: its volume if the name is share-manager-VOLUME, otherwise /NAME.

    No volume's name begins with a slash.
    """
    volume = name.removeprefix(SHARE_MANAGER_POD_PREFIX)
    return f"/{name}" if volume == name else volume


def to_object(key: str, record: ShareManagerPodRecord) -> Pod:
    """Return the pod of this cache key (`pod_key`) and record."""
    name, common = key[1:] if key.startswith("/") else SHARE_MANAGER_POD_PREFIX + key, record.common
    return Pod(
        metadata=ObjectMeta(
            name=name,
            labels=common.labels,
            annotations=None if common.decision is None else as_annotation(common.decision, owner=None),
            deletion_timestamp=common.deletion_timestamp,
        ),
        spec=PodSpec(node_name=common.node_name),
        status=pod_status(common.phase, record.scheduled_at),
    )
