"""What a VM would gain by co-scheduling: where the VM is now, and what the webhook would decide at its next start.

The VM may have opted in or not. The pod of the next start is the current one without its node, and without what the
webhook and a live migration have added to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api import kubevirt
from webhook.core.api.kubevirt import LABEL_MIGRATION_JOB_UID
from webhook.core.api.pod import Pod
from webhook.core.decision import Decision, Leave
from webhook.core.observe.vm_status import State, VMStatus, vm_status_of
from webhook.core.opt_in import OptIn, Policy, opt_in_of
from webhook.core.patch import unpatch
from webhook.core.placement.virt_launcher import place_virt_launcher
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, Reason
from webhook.core.view import ClusterView, NeedObjects

ASKS: Final = "true"  # the value of the annotation that a VM gets which opts in


class Candidate(Struct, frozen=True, kw_only=True):
    """A VM that runs and has a volume with a ShareManager; or one whose objects could not be read.

    Attributes:
        now: the VM as `status` would show it if it had opted in.
        annotation: the value of its annotation, None without one.
        opted_in: whether the VM asks for co-scheduling.
        decision: what the webhook would decide if the VM started now and asked for co-scheduling.
    """

    now: VMStatus
    annotation: str | None
    opted_in: bool
    decision: Decision

    @property
    def followed(self) -> bool:
        """Whether a share-manager would be created after the VM has its node, and the webhook would steer it there."""
        return isinstance(self.decision, Leave) and self.decision.why.reason is Reason.SHARE_MANAGER_NO_NODE


def candidate_of(pods: Sequence[Pod], view: ClusterView, policy: Policy) -> Candidate | NeedObjects | None:
    """Return what the VM of these pods would gain; None if no pod runs it, or if no volume has a ShareManager.

    Args:
        pods: all pods of one VM.
        view: the cluster. Its snapshot does not count these pods, because they are gone when the VM starts again.
        policy: the settings of the webhook.
    """
    unfinished = [pod for pod in pods if not kubevirt.is_finished(pod)]
    if not unfinished:
        return None
    pod = max(unfinished, key=kubevirt.running_order)
    opt_in = opt_in_of(pod, pod.metadata.namespace or "", view, policy)
    if isinstance(opt_in, NeedObjects):
        return opt_in
    opted_in = isinstance(opt_in, OptIn)
    asking = unfinished if opted_in else [_asking(each) for each in unfinished]
    now = vm_status_of(asking, view, policy)
    if now is None or not (now.state is State.UNKNOWN or any(volume.state for volume in now.volumes)):
        return None
    following = _next_pod(pod if opted_in else _asking(pod))
    decision = place_virt_launcher(following, pod.metadata.namespace or "", view, policy)
    if isinstance(decision, NeedObjects):
        return decision
    annotation = pod.metadata.annotation(ANNOTATION_CO_SCHEDULE)
    return Candidate(now=now, annotation=annotation, opted_in=opted_in, decision=decision)


def _asking(pod: Pod) -> Pod:
    """Return the pod as if its VM had opted in."""
    annotations = {**(pod.metadata.annotations or {}), ANNOTATION_CO_SCHEDULE: ASKS}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def _next_pod(pod: Pod) -> Pod:
    """Return the pod with which the VM starts again."""
    before, _ = unpatch.without_applied_patch(pod)
    labels = {name: value for name, value in (pod.metadata.labels or {}).items() if name != LABEL_MIGRATION_JOB_UID}
    return replace(before, metadata=replace(before.metadata, labels=labels), spec=replace(before.spec, node_name=None))
