"""What a cluster that was read once lacks, and what keeps its rows from being judged."""

from __future__ import annotations

from typing import Final

from webhook.component_base.errors import UserError
from webhook.core.api import kubevirt
from webhook.core.api.longhorn import LABEL_LONGHORN_COMPONENT, LONGHORN_API_VERSION
from webhook.core.api.longhorn import SHARE_MANAGER as COMPONENT
from webhook.core.api.pod import Pod
from webhook.core.observe.vm_state import is_running_unknown
from webhook.core.reunite.migration import minor_version
from webhook.objects.cluster import Cluster
from webhook.objects.documents import BadDocument
from webhook.objects.installed import LONGHORN_VERSION
from webhook.objects.kinds import (
    NAMESPACE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SETTING,
    SHARE_MANAGER,
    SHARE_MANAGER_POD,
)

_GANESHA_6: Final = (1, 8)  # the first Longhorn that has it: longhorn issue 9614
_DANGER: Final = (
    "serve NFS with a Ganesha before 6. Without free memory on their node, a VM and its share-manager can block each "
    "other; expected Longhorn 1.8 or newer: docs/concepts/loopback-nfs.md"
)
_READ: Final = (PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME, SHARE_MANAGER, SHARE_MANAGER_POD, NAMESPACE)


def require_pods(cluster: Cluster) -> None:
    """Raise BadDocument if files describe no pod at all: they do not tell which VMs run. A bundle tells it."""
    if not (cluster.objects.bundle or cluster.objects.of(POD)):
        raise BadDocument(
            f"{cluster.origin}: no Pod is described; expected the pods of the cluster, as `bundle` or kubectl get -o "
            "yaml writes them"
        )


def require_share_managers(cluster: Cluster) -> None:
    """Raise UserError if Longhorn's namespace has no ShareManager at all, though somebody could list them.

    Without one, nothing could be apart, and a wrong namespace would look like a cluster in order.
    """
    namespace = cluster.longhorn_namespace
    if cluster.objects.within(SHARE_MANAGER, namespace) or cluster.objects.unread(SHARE_MANAGER):
        return
    elsewhere = sorted({key.namespace for key in cluster.objects.of(SHARE_MANAGER)})
    hint = f"--longhorn-namespace {elsewhere[0]}" if elsewhere else "--longhorn-namespace"
    raise UserError(
        f"namespace {namespace} has no ShareManager at all; expected Longhorn's own namespace: {hint}",
        *of_other_versions(cluster),
    )


def of_other_versions(cluster: Cluster) -> list[str]:
    """Return a sentence if files have objects of Longhorn in an API version that is not read."""
    ignored = sorted(cluster.objects.ignored.items())
    old = [(each, count) for each, count in ignored if each.startswith("longhorn.io/")]
    other = [f"{count} {each}" for each, count in old if each.split()[0] != LONGHORN_API_VERSION]
    expected = f"expected {LONGHORN_API_VERSION}, which Longhorn has since 1.3"
    return [f"objects of Longhorn that are not read: {', '.join(other)}; {expected}"] if other else []


def unread(cluster: Cluster) -> list[str]:
    """Return a sentence for each kind of a row that could not be listed, and for pods whose status is not known."""
    problems = {kind.title: cluster.objects.unread(kind) for kind in _READ}
    unknown = sorted(pod.metadata.name or "" for pod in cluster.all_virt_launchers() if is_running_unknown(pod))
    if unknown:
        which = f"{unknown[0]}{f' and {len(unknown) - 1} others' if len(unknown) > 1 else ''}"
        problems[POD.title] = f"the status of {which} does not tell whether it runs"
    return [f"{title}: {problem}" for title, problem in problems.items() if problem]


def old_share_managers(cluster: Cluster) -> list[str]:
    """Return a sentence if share-managers in Longhorn's namespace are too old; nothing if none is known to be.

    The image of a pod tells what runs, also after an upgrade. Without an image the version of Longhorn counts.
    """
    namespace = cluster.longhorn_namespace
    pods = (pod for key, pod in cluster.objects.of(POD).items() if key.namespace == namespace)
    images = [image for pod in pods if _is_share_manager(pod) for image in [_image(pod)] if image]
    old = [image for image in images if _is_old(image.rpartition(":")[2])]
    if old:
        return [f"share-managers with an old image: {len(old)} ({min(old)}). They {_DANGER}"]
    version = cluster.objects.get(SETTING, LONGHORN_VERSION, namespace) if not images else None
    return [f"share-managers of Longhorn {version.value} {_DANGER}"] if version and _is_old(version.value) else []


def _is_share_manager(pod: Pod) -> bool:
    return pod.metadata.label(LABEL_LONGHORN_COMPONENT) == COMPONENT and not kubevirt.is_finished(pod)


def _image(pod: Pod) -> str:
    return next((each.image for each in pod.spec.containers or () if each.image), "")


def _is_old(version: str | None) -> bool:
    found = minor_version(version or "")
    return found is not None and found < _GANESHA_6
