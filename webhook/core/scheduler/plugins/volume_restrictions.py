"""kube-scheduler's VolumeRestrictions plugin (pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go).

A pod with a ReadWriteOncePod claim is rejected on each node as long as another pod uses the claim. Two pods with one
inline volume of certain kinds are kept apart.
Invariant: the plugin rejects no node for a pod that passes here. Which pods use the volume is not known.
"""  # noqa: E501 - the name of the file

from __future__ import annotations

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState


def pre_filter(cycle: CycleState) -> Why | None:
    """Return that the pod has a volume that another pod may keep it from."""
    claim = next((bound.claim for bound in cycle.volumes if bound.of_one_pod), None)
    if claim is not None:
        return Reason.VOLUME_RESTRICTIONS.why(what=f"claim {claim} is ReadWriteOncePod")
    volume = next((each for each in cycle.pod.spec.volumes or () if each.is_restricted), None)
    return Reason.VOLUME_RESTRICTIONS.why(what=f"volume {volume.name} is inline") if volume else None
