"""VMItem: one VM as it is shown. The page, `status`, `candidates` and `explain` make JSON of it, and text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

from msgspec import Struct

from webhook.core.causes import short_cause
from webhook.core.observe.next_start import NextStart
from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.observe.vm_volumes import VMVolumeStatus
from webhook.core.opt_in import Mode

STOPPED: Final = "stopped"


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
    """One VM.

    Attributes:
        state: STOPPED for a VM without a pod; of a VM that does not ask as if it asked.
        only_node: the one node on which the waiting pod may start.
        asked: the value that asks for co-scheduling, or does not; empty for none.
        asked_by: whose value that is: vm (its annotation), namespace (its label) or cluster (the setting).
        mode: what the value means in this cluster; None for a VM that does not ask.
        not_asked: why the VM does not ask; empty if it asks.
        cause: the reason in a few words, empty for a VM that is together.
        remedy: what to do about a VM that is apart, stuck or not running; empty for nothing.
        command: the command line that prints how; empty for none.
        reunite: what that program last said of the VM; empty for nothing.
        hints: what is wrong with the VM, or not known of it.
        next_start: what the webhook would ask for at the next start; None where that is not looked at.
        needs_share_manager: False if nobody else uses its volumes and virtiofs none, so that block volumes of a
            migratable StorageClass would do; None if that is not known.
        change: the command that opts the VM in; empty for none.
        no_change: why there is none; empty if there is one, and for a VM that asks.
    """

    metadata: ItemMetadata
    namespace: str
    name: str
    state: State | Literal["stopped"]
    since: str | None = None
    node: str | None = None
    only_node: str | None = None
    pod: str | None = None
    asked: str = ""
    asked_by: str = ""
    mode: Mode | None = None
    not_asked: str = ""
    decided: Decided | None = None
    pinned: bool = False
    migrating: bool = False
    cause: str = ""
    reason: str = ""
    because: str = ""
    remedy: str = ""
    command: str = ""
    reunite: str = ""
    volumes: list[VolumeItem]
    hints: Sequence[str] = ()
    next_start: NextStart | None = None
    needs_share_manager: bool | None = None
    change: str = ""
    no_change: str = ""

    @property
    def why(self) -> str:
        """Code and sentence of the reason."""
        return f"{self.reason}: {self.because}"

    @property
    def to_do(self) -> str:
        """The remedy with the command that prints how; empty for nothing."""
        return f"{self.remedy}: {self.command}" if self.command else self.remedy


def vm_item(row: VMStatus, line: Callable[[str], str], hints: Sequence[str] = ()) -> VMItem:
    """Return the row of a VM with a pod in the form that is shown.

    Args:
        row: where the VM is.
        line: returns the command line that runs this program with these arguments on the same cluster.
        hints: what is wrong with the VM, or not known of it.
    """
    arguments = row.remedy.arguments if row.remedy else ""
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
        mode=row.mode if row.not_asked is None else None,
        not_asked=str(row.not_asked or ""),
        decided=row.decided,
        pinned=row.pinned,
        migrating=row.migrating,
        cause="" if row.state is State.TOGETHER else short_cause(row.why),
        reason=row.why.reason.code,
        because=row.why.sentence,
        remedy=row.remedy.sentence if row.remedy else "",
        command=line(arguments) if arguments else "",
        reunite=row.said_by_reunite,
        volumes=[volume_item(volume) for volume in row.volumes],
        hints=hints,
    )


def volume_item(volume: VMVolumeStatus) -> VolumeItem:
    """Return a claim in the form that is shown."""
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
