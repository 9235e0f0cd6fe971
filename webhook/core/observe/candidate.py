"""What a VM would gain by co-scheduling: where it is now, and for which node the webhook would ask at its next start.

The VM may have opted in or not. The pod of the next start does not exist yet. So nothing here says whether the VM can
run on that node, or in which mode the webhook asks: the claims of the VM and their share-managers are the evidence.
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
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER, VMI_KIND
from webhook.core.api.meta import NamespacedName, ObjectMeta, OwnerReference
from webhook.core.api.pod import PersistentVolumeClaimVolumeSource, Pod, PodSpec, Volume
from webhook.core.api.virtual_machine import VirtualMachine, VirtualMachineInstance, VMClaim
from webhook.core.causes import short_cause
from webhook.core.decision import evidence_for
from webhook.core.evidence import share_managers, vm_facts
from webhook.core.evidence.finding import ClaimUse, Finding
from webhook.core.observe.node_problem import why_no_vm_starts
from webhook.core.observe.vm_status import State, VMStatus, vm_status_of
from webhook.core.observe.vm_volumes import VMVolumeStatus, volumes_of
from webhook.core.opt_in import Mode, OptIn, Policy, label_of, opt_in_of
from webhook.core.placement.virt_launcher import no_share_manager, rank_share_managers
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, Reason, Why
from webhook.core.view import ClusterView

_ASKS: Final = "true"  # the value of the annotation that a VM gets which opts in
_CHANGE: Final = {"spec": {"template": {"metadata": {"annotations": {ANNOTATION_CO_SCHEDULE: _ASKS}}}}}


class NextStart(Struct, frozen=True, kw_only=True):
    """What the webhook would ask for if the VM started now and asked for co-scheduling.

    `nodes`: the nodes for which it would ask, best first. `cause`: the reason in a few words; `because`: the evidence.
    `followed`: whether a share-manager would be created after the VM has its node, and the webhook would steer it
    there. `held`: why the VM would gain nothing whatever its pod is; empty if no reason is known. `unread`: what of
    these nodes could not be read.
    """

    nodes: Sequence[str]
    cause: str
    reason: str
    because: str
    followed: bool
    held: str = ""
    unread: Sequence[str] = ()

    @property
    def gains(self) -> bool:
        """Whether the webhook would ask for a node on which VMs start, or the share-manager would follow."""
        return self.followed or bool(self.nodes and not self.held)

    def sentence(self, checks: Sequence[str]) -> str:
        """Return what would happen, in words. `checks`: the rules of the VM itself that decide besides."""
        if self.held:
            return f"would gain nothing now: {self.held}"
        if self.followed:
            return "would ask for no node; a new share-manager would be steered to the node of the VM"
        if not self.nodes:
            return f"would ask for no node: {self.because}"
        own = "; ".join(checks) or "the VM's objects name no rule of their own"
        return f"would ask for {', '.join(self.nodes)}; kube-scheduler and the webhook's rules then check: {own}"


class Candidate(Struct, frozen=True, kw_only=True):
    """A VM, whether it has opted in or not.

    Attributes:
        vm: its namespace and name.
        node: where the VM is, None if it is on no node.
        state: what `status` would show if the VM had opted in; None for a VM without a pod.
        volumes: its claims.
        annotation: the value of its annotation, None without one.
        label: the value of its Namespace's label, None without one. A VM with an annotation never needs it.
        not_opted_in: why the VM does not ask for co-scheduling; None if it does.
        next_start: what the webhook would ask for if the VM started now and asked for co-scheduling.
        alone: whether nobody else uses a volume that has a share-manager; None if that is not known.
    """

    vm: NamespacedName
    node: str | None
    state: State | None
    volumes: tuple[VMVolumeStatus, ...]
    annotation: str | None
    label: str | None
    not_opted_in: Why | None
    next_start: NextStart
    alone: bool | None

    @property
    def opted_in(self) -> bool:
        """Whether the VM asks for co-scheduling."""
        return self.not_opted_in is None

    @property
    def has_share_manager(self) -> bool:
        """Whether a disk has a share-manager, or may have one that could not be read.

        A VM gains nothing by the share-manager of a CD-ROM or of KubeVirt's own claim (TPM, EFI).
        """
        disks = (volume for volume in self.volumes if volume.use >= ClaimUse.SHARED)
        return any(volume.state or volume.node or volume.unread for volume in disks)


def candidate_of(pods: Sequence[Pod], view: ClusterView, policy: Policy, at: str) -> Candidate | None:
    """Return what the VM of these pods would gain; None if no pod runs it.

    Args:
        pods: all pods of one VM.
        view: the cluster.
        policy: the settings of the webhook.
        at: the time for which the pods were read (RFC 3339).
    """
    unfinished = [pod for pod in pods if not kubevirt.is_finished(pod)]
    now = _status_if_asked(unfinished, view, policy, at)
    return _candidate(_running(unfinished, view), now.volumes, now.state, view, policy) if now else None


def candidate_of_start(
    meta: ObjectMeta, vm: VirtualMachine | VirtualMachineInstance, view: ClusterView, policy: Policy
) -> Candidate:
    """Return what a VM without a pod would gain. `meta`: what its objects say of the metadata of its pod."""
    pod = stated_pod(meta, vm.claims)
    return _candidate(pod, volumes_of(pod, view), None, view, policy)


def stated_pod(meta: ObjectMeta, claims: Sequence[VMClaim]) -> Pod:
    """Return what a VM's objects state of its next pod: its name, labels, annotations and claims, and no rule."""
    owner = OwnerReference(kind=VMI_KIND, name=meta.name)
    labels = {**(meta.labels or {}), LABEL_APP: VIRT_LAUNCHER}
    mounted = (claim.name for claim in claims if not claim.hotpluggable)
    volumes = [
        Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name))
        for name in mounted
    ]
    return Pod(metadata=replace(meta, labels=labels, owner_references=[owner]), spec=PodSpec(volumes=volumes))


def _candidate(
    pod: Pod, volumes: tuple[VMVolumeStatus, ...], state: State | None, view: ClusterView, policy: Policy
) -> Candidate:
    namespace = pod.metadata.namespace or ""
    opt_in = opt_in_of(pod, namespace, view, policy)
    findings = share_managers.find_share_managers(pod, namespace, view)
    annotation = pod.metadata.annotation(ANNOTATION_CO_SCHEDULE)
    return Candidate(
        vm=NamespacedName(namespace, kubevirt.vm_name(pod)),
        node=pod.spec.node_name,
        state=state,
        volumes=volumes,
        annotation=annotation,
        label=label_of(view.get(refs.namespace(namespace))) if annotation is None else None,
        not_opted_in=None if isinstance(opt_in, OptIn) else opt_in,
        next_start=_next_start(pod, findings, volumes, view),
        alone=_alone(findings),
    )


def _next_start(
    pod: Pod, findings: Sequence[Finding], volumes: Sequence[VMVolumeStatus], view: ClusterView
) -> NextStart:
    nodes = tuple(rank_share_managers(findings))
    failing = _why_failing(pod, view)
    if nodes:
        evidence = evidence_for(nodes[0], findings)
        why = evidence.why if evidence.use.is_own_disk else evidence.why_not_required
    else:
        why = no_share_manager(findings).why
    problems = [why_no_vm_starts(node, view) for node in nodes]
    unread = [each.sentence for each in problems if each and each.reason.columns.unread]
    certain = problems[0] if problems and all(problems) and not unread else None
    held = failing or certain
    # A share-manager that its StorageClass confines to some nodes may be unable to follow.
    served = [volume for volume in volumes if volume.state]
    confined = bool(served) and all(volume.confined for volume in served)
    return NextStart(
        nodes=nodes,
        cause=short_cause(held or why),
        reason=why.reason.code,
        because=why.sentence,
        followed=not failing and why.reason is Reason.SHARE_MANAGER_NO_NODE and not confined,
        held=held.sentence if held else "",
        unread=unread,
    )


def _why_failing(pod: Pod, view: ClusterView) -> Why | None:
    """Return that the VM has failed to start several times: the webhook then asks for no node."""
    failing, _ = vm_facts.start_failures(pod, pod.metadata.namespace or "", view)
    return failing if failing and vm_facts.fails_again(failing) else None


def _alone(findings: Sequence[Finding]) -> bool | None:
    served = [finding for finding in findings if finding.may_have_share_manager and finding.use is not ClaimUse.STATE]
    if any(finding.use is ClaimUse.SHARED for finding in served):
        return False
    unknown = any(finding.unsure or finding.why.reason.columns.unread for finding in findings)
    return None if unknown or not served else True


def _status_if_asked(unfinished: Sequence[Pod], view: ClusterView, policy: Policy, at: str) -> VMStatus | None:
    """Return the VM of these pods as `status` would show it if the VM had opted in; None as `candidate_of`."""
    if not unfinished:
        return None
    pod = _running(unfinished, view)
    has_opted_in = isinstance(opt_in_of(pod, pod.metadata.namespace or "", view, policy), OptIn)
    asked = unfinished if has_opted_in else [_asking(each) for each in unfinished]
    return vm_status_of(asked, view, policy if has_opted_in else replace(policy, mode=Mode.REQUIRED), at)


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


def _running(unfinished: Sequence[Pod], view: ClusterView) -> Pod:
    return vm_facts.running_pod(unfinished, unfinished[0].metadata.namespace or "", view)


def _asking(pod: Pod) -> Pod:
    """Return the pod as if its VM had opted in."""
    annotations = {**(pod.metadata.annotations or {}), ANNOTATION_CO_SCHEDULE: _ASKS}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))
