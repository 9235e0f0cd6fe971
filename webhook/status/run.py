"""The command status: read a cluster once, and print the rows of its VMs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TextIO

from msgspec.structs import replace

from webhook.cluster_options import opt_in_all_unknown, vm_names
from webhook.component_base.errors import UserError
from webhook.core.opt_in import OptedInBy
from webhook.objects.kinds import VIRT_LAUNCHER_POD
from webhook.objects.manifests import Manifests
from webhook.objects.parts import parts_of_rows
from webhook.objects.vm_rows import (
    existing_vms,
    misplaced_opt_ins,
    of_other_versions,
    old_share_managers,
    require_pods,
    require_share_managers,
    rows_from_manifests,
    unread,
)
from webhook.objects.webhook_settings import webhook_settings
from webhook.status.output import Output
from webhook.status.report import Selection
from webhook.status.settings import StatusSettings

if TYPE_CHECKING:
    from webhook.objects.parts import Part

_DEFAULT_NAMESPACE: Final = "default"


class NotReadable(UserError):
    """The pods of the VMs can't be read, so there is nothing to show."""


def run(settings: StatusSettings, *, stdout: TextIO, stderr: TextIO, color: bool) -> int:
    """Run the command with these settings. `color`: whether `stdout` takes ANSI colors. Returns the exit code.

    Raises:
        UserError: no cluster can be reached, or the pods of its VMs can't be read.
    """
    out = Output(settings, stdout, stderr, color=color)
    names = vm_names(settings.names)  # A word that is not a name is an error before a cluster is asked.
    cluster, origin = _cluster(settings)
    out.existing = existing_vms(cluster)
    made, problems = cluster.objects.bundle, unread(cluster)
    require_share_managers(cluster, settings.longhorn_namespace)
    webhook = webhook_settings(cluster, settings.longhorn_namespace)
    policy = webhook.policy
    rows = rows_from_manifests(cluster, policy, selector=settings.selector)
    selection = _selection(settings, names, _namespace(settings, made.namespace if made else _DEFAULT_NAMESPACE))
    if webhook.problem:
        all_in = rows_from_manifests(cluster, replace(policy, opt_in_all="true"), selector=settings.selector)
        if any(row.by is OptedInBy.CLUSTER for row in selection.rows(all_in)):
            problems.append(opt_in_all_unknown(webhook.problem))
    out.tell(
        *([f"the cluster as it was at {made.at}"] if made and settings.manifests else []),
        *of_other_versions(cluster),
        *webhook.notes,
        *selection.hints(misplaced_opt_ins(cluster)),
        *old_share_managers(cluster, settings.longhorn_namespace),
    )
    at = cluster.objects.at
    return out.show(selection, rows, origin=origin, at=at, settings=webhook.sentence, problems=problems)


def _cluster(settings: StatusSettings) -> tuple[Manifests, str]:
    """The cluster that files describe, or a live one; and its name for the user."""
    if settings.manifests:
        described = Manifests.load(settings.manifests, longhorn_namespace=settings.longhorn_namespace)
        require_pods(described, str(settings.manifests))
        return described, described.objects.origin(str(settings.manifests))
    from webhook.kube.collect import collect_at_terminal  # noqa: PLC0415 - the API client takes 1 s to import

    def parts(namespace: str) -> Sequence[Part]:
        return parts_of_rows(_namespace(settings, namespace))

    found = collect_at_terminal(settings.client_config, settings.longhorn_namespace, parts)
    origin = found.bundle.cluster if found.bundle else ""
    problem = found.unread(VIRT_LAUNCHER_POD)
    if problem:
        hint = (
            "your permissions, or choose a --namespace" if settings.all_namespaces else "your permissions, --namespace"
        )
        raise NotReadable(
            f"{origin}: {VIRT_LAUNCHER_POD.title}: {problem}; expected to list them: check {hint} and --context"
        )
    return Manifests(found, longhorn_namespace=settings.longhorn_namespace), origin


def _namespace(settings: StatusSettings, usual: str) -> str:
    """The namespace of the VMs, empty for all."""
    return "" if settings.all_namespaces else settings.namespace or usual


def _selection(settings: StatusSettings, names: tuple[str, ...], namespace: str) -> Selection:
    labels = settings.selector.requirements if settings.selector else ()
    return Selection(
        namespace=namespace,
        names=names,
        labels=",".join(map(str, labels)),
        apart=settings.apart,
    )
