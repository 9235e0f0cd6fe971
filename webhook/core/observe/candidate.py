"""What a VM would gain by co-scheduling: where the VM is now, and what the webhook would decide at its next start.

The VM may have opted in or not. The pod of the next start is the current one without its node, and without what the
webhook and a live migration have added to it. For a VM without a pod the caller makes the pod of the next start.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.core import refs
from webhook.core.api import kubevirt
from webhook.core.api.kubevirt import LABEL_MIGRATION_JOB_UID
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.causes import short_cause
from webhook.core.decision import UNCHANGED, Decision, Leave, outcome
from webhook.core.evidence import vm_facts
from webhook.core.evidence.finding import ClaimUse
from webhook.core.observe.vm_status import State, VMStatus, vm_status_of
from webhook.core.observe.vm_volumes import VMVolumeStatus, volumes_of
from webhook.core.opt_in import OptIn, Policy, label_of, opt_in_of
from webhook.core.patch import decision_patch
from webhook.core.placement.virt_launcher import place_virt_launcher
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, Reason, Why
from webhook.core.view import ClusterView

_ASKS: Final = "true"  # the value of the annotation that a VM gets which opts in
_CHANGE: Final = {"spec": {"template": {"metadata": {"annotations": {ANNOTATION_CO_SCHEDULE: _ASKS}}}}}


class NextStart(Struct, frozen=True, kw_only=True):
    """What the webhook would decide if the VM started now and asked for co-scheduling.

    `decision` is required, preferred or unchanged; `nodes` are the required or preferred nodes. `cause`: the reason in
    a few words. `followed`: whether a share-manager would be created after the VM has its node, and the webhook would
    steer it there. `rejected`: whether kube-scheduler takes none of the nodes for the VM, whatever runs there.
    """

    decision: str
    nodes: Sequence[str]
    cause: str
    reason: str
    because: str
    followed: bool
    rejected: bool = False

    @property
    def gains(self) -> bool:
        """Whether the VM or its share-manager would be placed."""
        return (self.decision != UNCHANGED and not self.rejected) or self.followed


class Candidate(Struct, frozen=True, kw_only=True):
    """A VM that has a volume with a ShareManager; or one whose objects could not be read.

    Attributes:
        vm: its namespace and name.
        node: where the VM is, None if it is on no node.
        state: what `status` would show if the VM had opted in; None for a VM without a pod.
        volumes: its claims.
        annotation: the value of its annotation, None without one.
        label: the value of its Namespace's label, None without one. A VM with an annotation never needs it.
        not_opted_in: why the VM does not ask for co-scheduling; None if it does.
        decision: what the webhook would decide if the VM started now and asked for co-scheduling.
    """

    vm: NamespacedName
    node: str | None
    state: State | None
    volumes: tuple[VMVolumeStatus, ...]
    annotation: str | None
    label: str | None
    not_opted_in: Why | None
    decision: Decision

    @property
    def opted_in(self) -> bool:
        """Whether the VM asks for co-scheduling."""
        return self.not_opted_in is None

    @property
    def _is_confined(self) -> bool:
        """Whether the StorageClass of each share-manager confines it to some nodes: it may be unable to follow."""
        return all(volume.confined for volume in self.volumes if volume.state)

    @property
    def next_start(self) -> NextStart:
        """The decision as it is shown."""
        decision, why = self.decision, self.decision.why
        left = isinstance(decision, Leave)
        return NextStart(
            decision=outcome(decision),
            nodes=() if isinstance(decision, Leave) else decision.nodes,
            cause=short_cause(why),
            reason=why.reason.code,
            because=why.sentence,
            followed=left and why.reason is Reason.SHARE_MANAGER_NO_NODE and not self._is_confined,
            rejected=not left and all(each.excluded for each in decision.node_fits),
        )


def candidate_of(pods: Sequence[Pod], view: ClusterView, policy: Policy) -> Candidate | None:
    """Return what the VM of these pods would gain; None if no pod runs it, or if no volume has a ShareManager.

    Args:
        pods: all pods of one VM.
        view: the cluster. Its snapshot does not count these pods, because they are gone when the VM starts again.
        policy: the settings of the webhook.
    """
    now = _status_if_asked(pods, view, policy)
    if now is None:
        return None
    return _at_next_start(_running(pods, view), now.volumes, now.state, view, policy)


def candidate_of_start(pod: Pod, view: ClusterView, policy: Policy) -> Candidate | None:
    """Return what a VM without a pod would gain if it started with this pod; None if no volume has a ShareManager."""
    volumes = volumes_of(pod, view)
    return _at_next_start(pod, volumes, None, view, policy) if _has_share_manager(volumes) else None


def _has_share_manager(volumes: Sequence[VMVolumeStatus]) -> bool:
    """Whether a disk has a ShareManager, or may have one that could not be read.

    A VM gains nothing by the share-manager of a CD-ROM or of KubeVirt's own claim (TPM, EFI).
    """
    return any(volume.state or volume.unread for volume in volumes if volume.use >= ClaimUse.SHARED)


def _at_next_start(
    pod: Pod, volumes: tuple[VMVolumeStatus, ...], state: State | None, view: ClusterView, policy: Policy
) -> Candidate:
    namespace = pod.metadata.namespace or ""
    opt_in = opt_in_of(pod, namespace, view, policy)
    not_opted_in = None if isinstance(opt_in, OptIn) else opt_in
    decision = place_virt_launcher(_next_pod(_asking(pod) if not_opted_in else pod), namespace, view, policy)
    annotation = pod.metadata.annotation(ANNOTATION_CO_SCHEDULE)
    return Candidate(
        vm=NamespacedName(namespace, kubevirt.vm_name(pod)),
        node=pod.spec.node_name,
        state=state,
        volumes=volumes,
        annotation=annotation,
        label=label_of(view.get(refs.namespace(namespace))) if annotation is None else None,
        not_opted_in=not_opted_in,
        decision=decision,
    )


def _status_if_asked(pods: Sequence[Pod], view: ClusterView, policy: Policy) -> VMStatus | None:
    """Return the VM of these pods as `status` would show it if the VM had opted in; None as `candidate_of`."""
    unfinished = [pod for pod in pods if not kubevirt.is_finished(pod)]
    if not unfinished:
        return None
    asking = unfinished if _has_opted_in(unfinished, view, policy) else [_asking(each) for each in unfinished]
    now = vm_status_of(asking, view, policy)
    return now if now and _has_share_manager(now.volumes) else None


def _has_opted_in(pods: Sequence[Pod], view: ClusterView, policy: Policy) -> bool:
    """Whether the VM of these pods, of which one at least is not finished, asks for co-scheduling."""
    pod = _running(pods, view)
    return isinstance(opt_in_of(pod, pod.metadata.namespace or "", view, policy), OptIn)


def opt_in_change(candidate: Candidate, owner: str | None) -> tuple[str, str]:
    """Return the command that opts the VM in, or why there is none; two empty strings if the VM has opted in.

    `owner` is the VM's VirtualMachine. A command would override somebody who has opted the VM out, so there is none.
    """
    why = candidate.not_opted_in
    if why is None:
        return "", ""
    if why.reason.columns.opted_out or why.reason.columns.unread:
        return "", why.sentence
    if owner is None:
        return "", "no VirtualMachine owns this instance: its creator can set the annotation"
    return opt_in_command(owner, candidate.vm.namespace), ""


def opt_in_command(vm: str, namespace: str) -> str:
    """Return the command that opts a VirtualMachine in.

    KubeVirt copies the annotation to the pod of the VM's next start.
    """
    patch = shlex.quote(json.dumps(_CHANGE, separators=(",", ":")))
    return f"kubectl patch virtualmachine {shlex.quote(vm)} -n {shlex.quote(namespace)} --type merge -p {patch}"


def _running(pods: Sequence[Pod], view: ClusterView) -> Pod:
    unfinished = [pod for pod in pods if not kubevirt.is_finished(pod)]
    return vm_facts.running_pod(unfinished, unfinished[0].metadata.namespace or "", view)


def _asking(pod: Pod) -> Pod:
    """Return the pod as if its VM had opted in."""
    annotations = {**(pod.metadata.annotations or {}), ANNOTATION_CO_SCHEDULE: _ASKS}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def _next_pod(pod: Pod) -> Pod:
    """Return the pod with which the VM starts again."""
    before = decision_patch.as_created(pod)
    if pod.metadata.label(LABEL_MIGRATION_JOB_UID) is not None:
        before = kubevirt.without_target_rule(before)
    labels = {name: value for name, value in (pod.metadata.labels or {}).items() if name != LABEL_MIGRATION_JOB_UID}
    return replace(before, metadata=replace(before.metadata, labels=labels))
