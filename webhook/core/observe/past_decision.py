"""PastDecision: what the annotation kubevirt-scheduler/decision of a pod says that was decided at the pod's creation.

webhook.core.decision.decision_sentence writes the annotation. Invariant: nothing is read into a text of others.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from webhook.core.api.kubevirt import LABEL_MIGRATION_JOB_UID
from webhook.core.api.pod import Pod
from webhook.core.decision import NOT_REQUIRED, OPTED_IN_BY
from webhook.core.opt_in import OptedInBy
from webhook.core.reasons import ANNOTATION_DECISION

_ON: Final = " on "
_MORE: Final = " and "  # before the number of further nodes, which the annotation does not name
_CHARS: Final = 1024  # the webhook writes no longer text; users may


class Decided(StrEnum):
    """What the webhook did when the pod was created, by its annotation."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    UNCHANGED = "unchanged"
    MIGRATED = "migrated"  # the pod is the target of a live migration, and the API server did not call the webhook
    NOTHING = "nothing"  # the API server did not call the webhook, or got no answer


_ANNOTATED: Final = frozenset((Decided.REQUIRED, Decided.PREFERRED, Decided.UNCHANGED))
_WRITTEN_ON_TARGETS: Final = frozenset((Decided.PREFERRED, Decided.UNCHANGED))


class PastDecision(Struct, frozen=True, kw_only=True, gc=False):
    """The decision for a pod at its creation.

    Attributes:
        decided: what the webhook did.
        on: the nodes in words, empty for a pod that it left unchanged.
        because: code and sentence of the reason, for a preference and for a pod left unchanged; else empty.
    """

    decided: Decided
    on: str = ""
    because: str = ""

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes that the annotation names."""
        return frozenset(self.on.partition(_MORE)[0].split(", ")) if self.on else frozenset()

    @property
    def names_all(self) -> bool:
        """Whether `nodes` has all nodes of the decision."""
        return _MORE not in self.on


def past_decision(pod: Pod) -> PastDecision:
    """Return what was decided for a pod, by its annotation and by its label of a live-migration target."""
    text = pod.metadata.annotation(ANNOTATION_DECISION) or ""
    word = text.partition(" ")[0].rstrip(":")
    migrated = pod.metadata.label(LABEL_MIGRATION_JOB_UID) is not None
    if word not in (_WRITTEN_ON_TARGETS if migrated else _ANNOTATED):
        return PastDecision(decided=Decided.MIGRATED if migrated else Decided.NOTHING)
    head, _, rest = text.partition(": ")
    because = rest if word == Decided.UNCHANGED else rest.partition(NOT_REQUIRED)[2]
    for by in OptedInBy:
        because = because.removesuffix(f"{OPTED_IN_BY}{by}")
    return PastDecision(decided=Decided(word), on=head.partition(_ON)[2], because=because)


def without_evidence(annotation: str) -> str:
    """Return the annotation with the parts that `past_decision` reads, for a cache; many pods then have one text."""
    if annotation.startswith(Decided.UNCHANGED):
        return annotation[:_CHARS]
    head, colon, rest = annotation[:_CHARS].partition(": ")
    _, because, reason = rest.partition(NOT_REQUIRED)
    return f"{head}{colon}{because}{reason}"
