"""The pod from which KubeVirt makes the target pod of a migration: the VM's pod as it was at its creation."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from webhook.core.api.kubevirt import HOSTNAME, LABEL_MIGRATION_JOB_UID, without_target_rule
from webhook.core.api.pod import Pod
from webhook.core.patch.unpatch import as_created


def pod_at_create(found: Pod, own_selector: Mapping[str, str] | None) -> Pod:
    """Return the pod without its node, and without what the webhook and an earlier migration have added.

    A migration adds a node selector, and KubeVirt's rule that keeps the target off the VM's node. `own_selector` is
    the node selector of the VMI.
    """
    pod = as_created(found)
    if pod.metadata.label(LABEL_MIGRATION_JOB_UID) is None:
        return pod
    pod = without_target_rule(pod)
    if HOSTNAME in (own_selector or {}):
        return pod
    left = {key: wanted for key, wanted in (pod.spec.node_selector or {}).items() if key != HOSTNAME}
    return replace(pod, spec=replace(pod.spec, node_selector=left))
