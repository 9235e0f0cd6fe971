"""What version 0.1.0 decided for a pod, cut out of the sentence that it wrote for people.

Version 0.1.0 recorded the decision nowhere else. This module goes with the next release but one (CHANGELOG), when no
VM runs any more in a pod of that version. A later version writes a record (webhook.core.patch.applied_patch).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.core.opt_in import OptedInBy
from webhook.core.patch.applied_patch import TEXT_MAX_CHARS, AppliedPatch

_ON: Final = " on "
_MORE: Final = " and "  # before the number of further nodes, which the sentence does not name
_NOT_REQUIRED: Final = "; not required, because "  # between the evidence of a preference and its reason
NEW_CODES: Final[Mapping[str, str]] = {
    "ConsumerLeaving": "ConsumerTerminating",
    "CrowdBefore": "ReplicasBehind",
    "Indivisible": "ReplicasMayConflict",
    "MigrationPrefers": "MigrationTargetNotRequired",
    "NeighbourExpected": "DependsOnUnscheduledPod",
    "NoShare": "ReplicaShareFull",
    "NodeAwaited": "PinnedVmWaits",
    "NodeChosen": "SourceNodeChosen",
    "NodeContested": "NodeMayFillUp",
    "OthersOnWay": "PodsNotEvaluatedYet",
    "PatchNotProven": "PatchDoesNotApply",
    "PodsUnknown": "FreeResourcesUnknown",
    "Repelled": "ExcludedByPod",
    "Unconfirmed": "EvidenceNotConfirmed",
    "VolumesLimited": "VolumeCountUnknown",
}
"""Code of 0.1.0 -> code of today, for reasons with another code."""


def split_sentence(text: str) -> AppliedPatch:
    """Return the parts of the sentence, as a record. A text of somebody else has another first word."""
    text = text[:TEXT_MAX_CHARS]  # version 0.1.0 wrote no longer text; users may
    head, _, rest = text.partition(": ")
    decided, _, on = head.partition(_ON)
    because = rest if decided == "unchanged" else rest.partition(_NOT_REQUIRED)[2]
    for by in OptedInBy:
        because = because.removesuffix(f"; opted in by {by}")
    names, _, more = on.partition(_MORE)
    reason, _, sentence = because.partition(": ")
    return AppliedPatch(
        decided=decided,
        on=tuple(names.split(", ")) if names else (),
        more=int(more.removesuffix(" more")) if more.removesuffix(" more").isdecimal() else 0,
        reason=NEW_CODES.get(reason, reason),
        because=sentence,
    )
