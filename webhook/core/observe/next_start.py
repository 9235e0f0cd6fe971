"""What the webhook would ask for at the next start of a VM, whether it has opted in or not.

The pod of that start does not exist yet. So nothing here says whether the VM can run on a node, or in which mode the
webhook asks: the claims of the VM and their share-managers are the evidence.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER, VMI_KIND
from webhook.core.api.meta import ObjectMeta, OwnerReference
from webhook.core.api.pod import PersistentVolumeClaimVolumeSource, Pod, PodSpec, Volume
from webhook.core.api.virtual_machine import VirtualMachine, VMClaim
from webhook.core.decision import evidence_for
from webhook.core.evidence import facts, share_managers
from webhook.core.evidence.facts import ClaimUse, Finding
from webhook.core.observe.remedy import owner_of, why_no_vm_starts
from webhook.core.observe.vm_status import NextStart
from webhook.core.observe.vm_volumes import volumes_of
from webhook.core.opt_in import opts_in
from webhook.core.placement.virt_launcher import no_share_manager, rank_share_managers
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, Reason, Why
from webhook.core.view import ClusterView

TEMPLATE: Final = "spec.template.metadata"
_CHANGE: Final = {"spec": {"template": {"metadata": {"annotations": {ANNOTATION_CO_SCHEDULE: "true"}}}}}


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


def next_start_of(pod: Pod, view: ClusterView, checks: Sequence[str] = ()) -> NextStart:
    """Return what the webhook would ask for. `pod`: the one in which the VM runs, or what its objects state of it."""
    findings = share_managers.find_share_managers(pod, pod.metadata.namespace or "", view)
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
    served = [volume for volume in volumes_of(pod, view) if volume.share_manager]
    confined = bool(served) and all(volume.confined for volume in served)
    return NextStart(
        nodes=nodes,
        reason=(held or why).reason.code,
        because=(held or why).sentence,
        followed=not failing and why.reason is Reason.SHARE_MANAGER_NO_NODE and not confined,
        held=bool(held),
        unread=unread,
        checks=checks,
        alone=_alone(findings),
    )


def _why_failing(pod: Pod, view: ClusterView) -> Why | None:
    """Return that the VM has failed to start several times: the webhook then asks for no node."""
    failing, _ = facts.start_failures(pod, pod.metadata.namespace or "", view)
    return failing if failing and facts.fails_again(failing) else None


def _alone(findings: Sequence[Finding]) -> bool | None:
    served = [finding for finding in findings if finding.may_have_share_manager and finding.use is not ClaimUse.STATE]
    if any(finding.use is ClaimUse.SHARED for finding in served):
        return False
    unknown = any(finding.unsure or finding.why.reason.columns.unread for finding in findings)
    return None if unknown or not served else True


def opt_in_change(why: Why | None, name: str | None, vm: VirtualMachine | None, namespace: str) -> tuple[str, str]:
    """Return the command that opts a VM in, or why there is none; two empty strings if the VM has opted in.

    A command would override somebody who has opted the VM out, also since its start. What owns a VirtualMachine writes
    it again. In both cases there is none.

    Args:
        why: why the VM does not ask; None if it does.
        name: of its VirtualMachine; None if it has none.
        vm: the VirtualMachine; None if it was not found.
        namespace: of both.
    """
    if why is None:
        return "", ""
    if why.reason.columns.opted_out or why.reason.columns.unread:
        return "", why.sentence
    if name is None:
        return "", "no VirtualMachine owns this instance: its creator can set the annotation"
    if vm is None:
        return "", f"VirtualMachine {name} was not found, and its template can opt the VM out"
    if owner := owner_of(vm):
        return "", f"{owner} owns the VirtualMachine: set the annotation there"
    stated = (vm.spec.template.metadata or ObjectMeta()).annotation(ANNOTATION_CO_SCHEDULE)
    if opts_in(stated) or stated == "false":
        return "", f"{ANNOTATION_CO_SCHEDULE} is {stated} in {TEMPLATE}.annotations already, from the next start on"
    return opt_in_command(name, namespace), ""


def opt_in_command(vm: str, namespace: str) -> str:
    """Return the command that opts a VirtualMachine in.

    KubeVirt copies the annotation to the pod of the VM's next start.
    """
    patch = shlex.quote(json.dumps(_CHANGE, separators=(",", ":")))
    return f"kubectl patch virtualmachine {shlex.quote(vm)} -n {shlex.quote(namespace)} --type merge -p {patch}"


def misplaced(meta: ObjectMeta, owner: ObjectMeta | None, place: str) -> Iterator[str]:
    """Return a hint for each wrong place that has the opt-in annotation, unless the right place has it too.

    KubeVirt copies the annotations of a VirtualMachine's template to the pod, and none of the VirtualMachine itself.

    Args:
        meta: the metadata that KubeVirt copies to the pod.
        owner: the metadata of the VirtualMachine, which KubeVirt does not copy to the pod.
        place: the field path of `meta`.
    """
    if meta.annotation(ANNOTATION_CO_SCHEDULE) is not None:
        return
    values = {
        "metadata.annotations": owner and owner.annotation(ANNOTATION_CO_SCHEDULE),
        "metadata.labels": owner and owner.label(ANNOTATION_CO_SCHEDULE),
        f"{place}.labels": meta.label(ANNOTATION_CO_SCHEDULE),
    }
    for where, value in values.items():
        if value is not None:
            yield (
                f'{ANNOTATION_CO_SCHEDULE}: "{value}" is in {where}, where the webhook does not read it; '
                f"expected in {place}.annotations: move it there"
            )
