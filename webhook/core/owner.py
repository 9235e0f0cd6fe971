"""The owner of the incoming pod: whether the cluster has the object that the pod is created for.

KubeVirt creates the pods of a VirtualMachineInstance, and Longhorn that of a ShareManager. Each names its object, with
the uid, in its ownerReferences. Anybody who can connect to the webhook can send another pod, and so can a user in a dry
run or in a request that the API server refuses afterwards. Such a pod must cost one read at most, and leave nothing
behind. Invariant: nothing else is asked before the owner is found.
"""

from __future__ import annotations

from webhook.core import refs
from webhook.core.api.kubevirt import VMI_KIND
from webhook.core.api.longhorn import SHARE_MANAGER_KIND
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.placement.share_manager import volume_of
from webhook.core.reasons import Reason, Why
from webhook.core.view import ClusterView, NoObject, Ref


def find_vmi(pod: Pod, namespace: str, view: ClusterView) -> str | Why:
    """Return the uid of the VirtualMachineInstance in `namespace` that owns the pod; or why none is known to."""
    owner = pod.metadata.owner(VMI_KIND)
    name = (owner and owner.name) or ""
    return _find(pod, VMI_KIND, refs.virtual_machine_instance(NamespacedName(namespace, name)), view)


def find_share_manager(pod: Pod, _: str, view: ClusterView) -> str | Why:
    """Return the uid of the ShareManager of the pod's volume, which owns the pod; or why it is not known to."""
    return _find(pod, SHARE_MANAGER_KIND, refs.share_manager(volume_of(pod)), view)


def _find(pod: Pod, kind: str, ref: Ref, view: ClusterView) -> str | Why:
    owner = pod.metadata.owner(kind)
    if owner is None or not owner.uid or owner.name != ref.name or not ref.name:
        return Reason.NO_OWNER.why(kind=kind)
    lacking = view.why_no_owner(ref, owner.uid)
    if lacking is NoObject.UNAVAILABLE:
        return Reason.OWNER_LOOKUP_FAILED.why(kind=kind, owner=ref.name, problem=view.read_error(ref))
    return Reason.OWNER_NOT_FOUND.why(kind=kind, owner=ref.name) if lacking else owner.uid
