"""What a VM of files would gain by co-scheduling, and the VirtualMachine that owns it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Final

from webhook.core.api.kubevirt import VMI_KIND
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.observe.candidate import Candidate, candidate_of
from webhook.core.observe.restart import assumed_owner
from webhook.core.opt_in import Policy
from webhook.core.view import NeedObjects
from webhook.objects.manifests import Manifests

_KUBEVIRT: Final = "kubevirt.io/v1"


def candidate_in(cluster: Manifests, pods: Sequence[Pod], policy: Policy) -> Candidate | None:
    """Return what the VM of these pods would gain; None if it has no share-manager. Its own pods do not count."""
    snapshot = cluster.snapshot()
    with snapshot.without(pods) if isinstance(snapshot, ListedSnapshot) else nullcontext():
        candidate = candidate_of(pods, cluster, policy)
    assert not isinstance(candidate, NeedObjects)  # noqa: S101 - for the type checker: everything was read
    return candidate


def owner_in(cluster: Manifests, vm: NamespacedName) -> str | None:
    """Return the VirtualMachine that owns the VM; without its instance in the files, the one of the VM's name."""
    vmi = cluster.objects.documents(_KUBEVIRT, VMI_KIND).get(vm)
    return assumed_owner(vmi.value if vmi else {}, vm.name)
