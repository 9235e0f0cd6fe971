"""PastDecision: what was decided for a pod at its creation, by the record that the webhook wrote into the pod.

The record is an annotation (webhook.core.patch.applied_patch). Invariants: a record that names another owner than the
pod's is a copy, and says nothing; nothing here raises, whatever a user wrote into a pod.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from webhook.core.api.kubevirt import LABEL_MIGRATION_JOB_UID
from webhook.core.api.meta import OwnerReference
from webhook.core.api.pod import Pod
from webhook.core.decision import NODES_SHOWN, nodes_in_words
from webhook.core.patch.applied_patch import AppliedPatch, from_annotation, owner_uid, to_annotation
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH, SENTENCE_MAX_CHARS


class Decided(StrEnum):
    """What the webhook did when the pod was created, by its record."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    UNCHANGED = "unchanged"
    MIGRATED = "migrated"  # the pod is the target of a live migration, and the API server did not call the webhook
    NOTHING = "nothing"  # the API server did not call the webhook, or got no answer, or the VM did not ask


_RECORDED: Final = {each.value: each for each in (Decided.REQUIRED, Decided.PREFERRED, Decided.UNCHANGED)}


class PastDecision(Struct, frozen=True, kw_only=True):
    """The decision for a pod at its creation.

    Attributes:
        decided: what the webhook did.
        nodes: the nodes that the record names, best first; none for a pod that it left unchanged.
        more: how many nodes of the decision the record does not name.
        reason: the code of the reason, for a preference and for a pod left unchanged; else empty.
        sentence: the reason in words.
    """

    decided: Decided
    nodes: tuple[str, ...] = ()
    more: int = 0
    reason: str = ""
    sentence: str = ""

    @property
    def wrote_terms(self) -> bool:
        """Whether the pod has terms of the webhook, or had terms that are as good."""
        return self.decided in (Decided.REQUIRED, Decided.PREFERRED)

    @property
    def on(self) -> str:
        """The nodes in words."""
        return nodes_in_words(self.nodes, self.more)

    @property
    def because(self) -> str:
        """Code and sentence of the reason; empty without one."""
        return f"{self.reason}: {self.sentence}" if self.reason else ""


def past_decision(pod: Pod) -> PastDecision:
    """Return what was decided for a pod, by its record and by its label of a live-migration target."""
    if pod.metadata.label(LABEL_MIGRATION_JOB_UID) is not None:
        return PastDecision(decided=Decided.MIGRATED)
    decision = recorded_decision(pod.metadata.annotation(ANNOTATION_APPLIED_PATCH), pod.metadata.owner_references)
    return decision or PastDecision(decided=Decided.NOTHING)


def recorded_decision(record: str | None, owners: Sequence[OwnerReference] | None) -> PastDecision | None:
    """Return the decision in the record of a pod; None if there is none, or if it is that of another pod.

    The webhook never requires the node of a live-migration target.
    """
    applied = from_annotation(record)
    decided = _RECORDED.get(applied.decided)
    if decided is None or applied.owner != owner_uid(owners) or not _is_bounded(applied):
        return None
    return PastDecision(
        decided=decided, nodes=applied.on, more=applied.more, reason=applied.reason, sentence=applied.because
    )


def _is_bounded(applied: AppliedPatch) -> bool:
    """Whether the webhook can have written this: a cache stores it for each pod."""
    chars = sum(map(len, (*applied.on, applied.reason, applied.because)))
    return len(applied.on) <= NODES_SHOWN and applied.more >= 0 and chars <= 2 * SENTENCE_MAX_CHARS


def as_annotation(past: PastDecision, owner: str | None) -> dict[str, str]:
    """Return the annotation of a pod with this owner that records the decision, and nothing else."""
    applied = AppliedPatch(
        owner=owner or "",
        decided=past.decided,
        on=past.nodes,
        more=past.more,
        reason=past.reason,
        because=past.sentence,
    )
    return {ANNOTATION_APPLIED_PATCH: to_annotation(applied)}
