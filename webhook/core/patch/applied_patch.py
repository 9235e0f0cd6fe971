"""AppliedPatch: the record of what the webhook decided for a pod and wrote into it, in an annotation for programs.

`status` and the others read from it what was decided (webhook.core.observe.past_decision).

If another webhook changes the pod afterwards, the API server calls this webhook again for the pod (apiserver
mutating/dispatcher.go, reinvocationPolicy IfNeeded). The record separates what the webhook wrote from the user's own.
KubeVirt copies annotations of a VM's template to its pods. So the record names the pod's owner, which has a new uid at
each start. A record with another uid is a copy.
Invariant: the record is bounded: MAX_TERMS node names, as many preferences, a sentence of SENTENCE_MAX_CHARS, and three
more names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from webhook.core.api.affinity import MAX_TERMS
from webhook.core.api.kubevirt import VMI_KIND
from webhook.core.api.longhorn import SHARE_MANAGER_KIND
from webhook.core.api.meta import OwnerReference
from webhook.core.api.pod import Pod
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH

RECORD_MAX_CHARS: Final = 64 * 1024
"""Of the annotation: 200 names with their numbers at 280, fingerprints at 20, and the text. A pod may have 256 KiB."""


_Bounded: Final = Meta(max_length=MAX_TERMS)
AddedPreferences = Annotated[tuple[tuple[str, int, int], ...], _Bounded]
"""Node, weight, and the number of copies of each preferred term that was added."""


class AppliedPatch(Struct, frozen=True, omit_defaults=True):
    """What one answer of the webhook decided for a pod, and what it added to it.

    Attributes:
        nodes: the nodes to which required terms were narrowed; the first one in place, the others in copies of a term.
        narrowed: how many terms name one of these nodes after the patch. The pod's own terms name none by a field.
        preferred: the preferred node affinity that was added.
        near_nodes: the preferred pod affinity that was added.
        no_eviction: whether the annotation for the descheduler was added.
        owner: the uid of the pod's owner (`owner_uid`).
        by: NAMESPACE or CLUSTER if that opted the VM in, not its own annotation; matchConditions of manifests/ read it.
        decided: required, preferred or unchanged.
        on: the first nodes of the decision, best first, and `more` the number of those that are not named.
        reason: the code of the reason why no node is required, and `because` its sentence. Empty if one is required,
            and for a share-manager pod that is steered.
    """

    nodes: Annotated[tuple[str, ...], _Bounded] = ()
    narrowed: int = 0
    preferred: AddedPreferences = ()
    near_nodes: AddedPreferences = ()
    no_eviction: bool = False
    owner: str = ""
    by: str = ""
    decided: str = ""
    on: tuple[str, ...] = ()
    more: int = 0
    reason: str = ""
    because: str = ""

    @property
    def wrote_terms(self) -> bool:
        """Whether anything was added to the pod's affinity."""
        return bool(self.nodes or self.preferred or self.near_nodes)


_DECODER: Final = msgspec.json.Decoder(AppliedPatch)


def to_annotation(applied: AppliedPatch) -> str:
    """Return the annotation's value, JSON."""
    return msgspec.json.encode(applied).decode()


def from_annotation(text: str | None) -> AppliedPatch:
    """Return the record in an annotation's value; an empty record for None, and for what the webhook never writes."""
    try:
        return _DECODER.decode(text) if text and len(text) <= RECORD_MAX_CHARS else AppliedPatch()
    except (msgspec.DecodeError, UnicodeError, RecursionError):  # users may write what they like
        return AppliedPatch()


def applied_to(pod: Pod, owner: str) -> AppliedPatch:
    """Return the record of what the webhook wrote into this pod of an owner with this uid; else an empty record.

    It is also empty if `owner` is: who creates a pod without an owner can write any record into it.
    """
    applied = from_annotation(pod.metadata.annotation(ANNOTATION_APPLIED_PATCH))
    return applied if owner and applied.owner == owner else AppliedPatch()


def owner_uid(owners: Sequence[OwnerReference] | None) -> str:
    """Return the uid of a pod's owner, a VirtualMachineInstance or a ShareManager; empty if the pod has none."""
    uids = {owner.kind: owner.uid for owner in reversed(owners or ())}
    return uids.get(VMI_KIND) or uids.get(SHARE_MANAGER_KIND) or ""
