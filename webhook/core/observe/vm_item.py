"""VMItem: a VM's row as JSON, for `status`, the page, and (its volumes) `candidates`."""

from __future__ import annotations

from msgspec import Struct

from webhook.core.causes import short_cause
from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.observe.vm_volumes import VMVolumeStatus
from webhook.core.opt_in import Mode


class VolumeItem(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """One claim of a VM. `node` is the node of its share-manager."""

    claim: str
    volume: str | None
    node: str | None
    share_manager: str | None
    together: bool | None
    since: str | None
    reason: str
    because: str


class ItemMetadata(Struct, frozen=True, kw_only=True, gc=False):
    """Namespace and name, where every object of Kubernetes has them."""

    namespace: str
    name: str


class VMItem(Struct, rename="camel", frozen=True, kw_only=True, gc=False):
    """One VM that asks for co-scheduling.

    `asked_by`: whose value `asked` is: vm (its annotation), namespace (its label) or cluster (the setting). `mode` is
    what the value means in this cluster. `only_node`: the one node on which the waiting pod may start. `cause`: the
    reason in a few words, empty for a VM that is together.
    `remedy`: what to do about a VM that is apart, stuck or not running. `reunite`: what that program last said of it.
    Both can be empty.
    """

    metadata: ItemMetadata
    namespace: str
    name: str
    state: State
    since: str | None
    node: str | None
    only_node: str | None
    pod: str
    asked: str
    asked_by: str
    mode: Mode
    decided: Decided
    pinned: bool
    migrating: bool
    cause: str
    reason: str
    because: str
    remedy: str
    reunite: str
    volumes: list[VolumeItem]


def vm_item(row: VMStatus, remedy: str, reunite: str) -> VMItem:
    """Return a row in the form that is printed. `remedy`: with the command that the reader can type, or without."""
    return VMItem(
        metadata=ItemMetadata(namespace=row.namespace, name=row.name),
        namespace=row.namespace,
        name=row.name,
        state=row.state,
        since=row.since,
        node=row.node,
        only_node=row.only,
        pod=row.pod,
        asked=row.asked,
        asked_by=row.by.name.lower(),
        mode=row.mode,
        decided=row.decided,
        pinned=row.pinned,
        migrating=row.migrating,
        cause="" if row.state is State.TOGETHER else short_cause(row.why),
        reason=row.why.reason.code,
        because=row.why.sentence,
        remedy=remedy,
        reunite=reunite,
        volumes=[volume_item(volume) for volume in row.volumes],
    )


def volume_item(volume: VMVolumeStatus) -> VolumeItem:
    """Return a claim in the form that is printed."""
    return VolumeItem(
        claim=volume.claim,
        volume=volume.volume,
        node=volume.node,
        share_manager=volume.state,
        together=volume.together,
        since=volume.since,
        reason=volume.why.reason.code,
        because=volume.why.sentence,
    )
