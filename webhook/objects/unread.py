"""What a cluster that was read once lacks, what keeps its rows from being judged, and the settings of its webhook.

The settings are those of the installed webhook that decide, as its running pods state them. Without a pod that could be
read, an annotation of the webhook's configuration tells one of them. Invariant: a value that nobody states is the
default of `serve`, and is called assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from webhook.component_base.errors import UserError
from webhook.core.api import kubevirt
from webhook.core.api.longhorn import LONGHORN_API_VERSION, is_share_manager
from webhook.core.api.migration import minor_version
from webhook.core.api.pod import Pod
from webhook.core.observe.vm_state import is_running_unknown
from webhook.core.opt_in import Policy, opt_in_all_of
from webhook.core.reasons import ANNOTATION_OPT_IN_ALL
from webhook.objects.cluster import Cluster
from webhook.objects.documents import BadDocument, field_at
from webhook.objects.installed import LONGHORN_VERSION, UNKNOWN, VALUES
from webhook.objects.kinds import (
    EVENT,
    NAMESPACE,
    NODE,
    OTHER_POD,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SETTING,
    SHARE_MANAGER,
    SHARE_MANAGER_POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    WEBHOOK_CONFIGURATION,
    WEBHOOK_POD,
    APIResource,
)
from webhook.settings import policy_of

_GANESHA_6: Final = (1, 8)  # the first Longhorn that has it: longhorn issue 9614
_DANGER: Final = (
    "serve NFS with a Ganesha before 6. Without free memory on their node, a VM and its share-manager can block each "
    "other; expected Longhorn 1.8 or newer: docs/concepts/loopback-nfs.md"
)
_READ: Final[tuple[APIResource[Any], ...]] = (
    PERSISTENT_VOLUME_CLAIM,
    PERSISTENT_VOLUME,
    SHARE_MANAGER,
    SHARE_MANAGER_POD,
    NAMESPACE,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    OTHER_POD,
)


def require_pods(cluster: Cluster) -> None:
    """Raise BadDocument if files describe no pod at all: they do not tell which VMs run. A bundle tells it."""
    if not (cluster.objects.bundle or cluster.objects.of(POD)):
        raise BadDocument(
            f"{cluster.origin}: no Pod is described; expected the pods of the cluster, as `bundle` or kubectl get -o "
            "yaml writes them"
        )


def no_share_managers(cluster: Cluster) -> list[str]:
    """Return sentences if Longhorn's namespace has no ShareManager at all, though somebody could list them.

    Without one, nothing could be apart, and a wrong namespace would look like a cluster in order.
    """
    namespace = cluster.longhorn_namespace
    if cluster.objects.within(SHARE_MANAGER, namespace) or cluster.objects.unread(SHARE_MANAGER):
        return []
    elsewhere = sorted({key.namespace for key in cluster.objects.of(SHARE_MANAGER)})
    hint = f"--longhorn-namespace {elsewhere[0]}" if elsewhere else "--longhorn-namespace"
    return [
        f"namespace {namespace} has no ShareManager at all; expected Longhorn's own namespace: {hint}",
        *of_other_versions(cluster),
    ]


def require_share_managers(cluster: Cluster) -> None:
    """Raise UserError with the sentences of `no_share_managers`, if there are some."""
    if found := no_share_managers(cluster):
        raise UserError(*found)


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


def of_remedies(cluster: Cluster) -> list[str]:
    """Return a sentence for each kind that could not be listed, and on which no state depends, but what to do."""
    said: dict[APIResource[Any], str] = {
        NODE: "whether a VM can start on the node of its share-manager",
        EVENT: "what `reunite` last said of a VM",
    }
    return [f"{what} is not known: {problem}" for kind, what in said.items() if (problem := cluster.unread(kind))]


def old_share_managers(cluster: Cluster) -> list[str]:
    """Return a sentence if share-managers in Longhorn's namespace are too old; nothing if none is known to be.

    The image of a pod tells what runs, also after an upgrade. Without an image the version of Longhorn counts.
    """
    namespace = cluster.longhorn_namespace
    pods = (pod for key, pod in cluster.objects.of(POD).items() if key.namespace == namespace)
    serving = (pod for pod in pods if is_share_manager(pod.metadata) and not kubevirt.is_finished(pod))
    images = [image for pod in serving if (image := _image(pod))]
    old = [image for image in images if _is_old(image.rpartition(":")[2])]
    if old:
        return [f"share-managers with an old image: {len(old)} ({min(old)}). They {_DANGER}"]
    version = cluster.objects.get(SETTING, LONGHORN_VERSION, namespace) if not images else None
    return [f"share-managers of Longhorn {version.value} {_DANGER}"] if version and _is_old(version.value) else []


def _image(pod: Pod) -> str:
    return next((each.image for each in pod.spec.containers or () if each.image), "")


def _is_old(version: str | None) -> bool:
    found = minor_version(version or "")
    return found is not None and found < _GANESHA_6


class WebhookSettings(Struct, frozen=True, kw_only=True):
    """The settings, and what is known of them.

    Attributes:
        policy: the settings as core takes them.
        assumed: the options whose value nobody states.
        problem: why it is not known whether the cluster opts in all VMs; empty if it is, or if no webhook is described.
        notes: what contradicts what, a sentence each.
    """

    policy: Policy
    assumed: Sequence[str] = ()
    problem: str = ""
    notes: Sequence[str] = ()

    @property
    def sentence(self) -> str:
        """The settings in words."""
        policy = self.policy
        values = {
            "mode": policy.mode.value,
            "opt-in-all": policy.opt_in_all,
            "audit": "on" if policy.audit else "off",
            "shortlist": "auto" if policy.shortlist else "off",
        }
        assumed = dict.fromkeys(self.assumed, " (assumed)")
        return ", ".join(f"{name} {value}{assumed.get(name, '')}" for name, value in values.items())


def webhook_settings(cluster: Cluster) -> WebhookSettings:
    """Return the settings of the cluster's webhook.

    Anybody may give the labels of its pods to a pod. So only those in the namespace that the configuration calls count.
    """
    pods = {} if cluster.unread(WEBHOOK_POD) else cluster.objects.of(WEBHOOK_POD)
    called = {
        field_at(each, "clientConfig", "service", "namespace")
        for each in cluster.objects.configuration().get("webhooks") or ()
    } - {None}
    stated = [each for key, pod in pods.items() if not called or key.namespace in called for each in pod.stated]
    known = {name: _agreed({each[name] for each in stated}) for name in VALUES}
    notes = [f"the webhook's pods differ in --{name}" for name in VALUES if len({each[name] for each in stated}) > 1]
    unread = cluster.unread(WEBHOOK_CONFIGURATION)
    if cluster.objects.configuration():
        annotated = opt_in_all_of(cluster.objects.configuration())
        if known["opt-in-all"] not in (UNKNOWN, annotated):
            notes.append(
                f"the webhook's pods run with --opt-in-all={known['opt-in-all']}, and the annotation "
                f"{ANNOTATION_OPT_IN_ALL} of its configuration stands for {annotated}: the pods count"
            )
        known["opt-in-all"] = known["opt-in-all"] or annotated
    where = known["longhorn-namespace"]
    if where not in (UNKNOWN, cluster.longhorn_namespace):
        notes.append(
            f"the webhook reads Longhorn's objects in namespace {where}, and this command in "
            f"{cluster.longhorn_namespace}: --longhorn-namespace {where}"
        )
    values = {name: known[name] or allowed[0] for name, allowed in VALUES.items()}
    return WebhookSettings(
        policy=policy_of({name.replace("-", "_"): value for name, value in values.items()}),
        assumed=[name for name, value in known.items() if value == UNKNOWN],
        problem="" if known["opt-in-all"] else unread,
        notes=notes,
    )


def _agreed(values: set[str]) -> str:
    return values.pop() if len(values) == 1 else UNKNOWN
