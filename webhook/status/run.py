"""The command status: read a cluster once, and print the rows of its VMs, or a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TextIO

from msgspec.structs import replace

from webhook.cluster_options import opt_in_all_unknown, vm_names
from webhook.component_base.errors import UserError
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core.observe.vm_status import TROUBLED
from webhook.core.opt_in import OptedInBy, Policy
from webhook.objects.kinds import VIRT_LAUNCHER_POD
from webhook.objects.manifests import Manifests
from webhook.objects.parts import parts_of_nodes, parts_of_rows
from webhook.objects.vm_rows import (
    misplaced_opt_ins,
    old_share_managers,
    opt_in_all_in,
    require_pods,
    rows_from_manifests,
    unread,
)
from webhook.status.output import Output, nobody, now
from webhook.status.report import Selection
from webhook.status.settings import StatusSettings

if TYPE_CHECKING:
    from webhook.core.observe.vm_status import VMStatus
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
    cluster, origin = _cluster(settings)
    made, problems = cluster.objects.bundle, unread(cluster)
    setting, unknown = (settings.opt_in_all, "") if settings.opt_in_all else opt_in_all_in(cluster)
    # The mode of the webhook is not known here: a VM with the value `true` counts as asking for the default.
    policy = Policy(longhorn_namespace=settings.longhorn_namespace, opt_in_all=setting)
    rows = rows_from_manifests(cluster, policy, selector=settings.selector)
    selection = _selection(settings, _namespace(settings, made.namespace if made else _DEFAULT_NAMESPACE))
    if unknown:
        all_in = rows_from_manifests(cluster, replace(policy, opt_in_all="true"), selector=settings.selector)
        if any(row.by is OptedInBy.CLUSTER for row in selection.rows(all_in)):
            problems.append(opt_in_all_unknown(unknown))
    out.tell(*selection.hints(misplaced_opt_ins(cluster)), *old_share_managers(cluster, settings.longhorn_namespace))
    at = made.at if made else now()
    if settings.plan:
        return _plan(cluster, rows, selection, problems, out, f"{origin} at {at}")
    return out.show(selection, rows, origin=origin, at=at, problems=problems)


def _cluster(settings: StatusSettings) -> tuple[Manifests, str]:
    """The cluster that files describe, or a live one; and its name for the user."""
    if settings.manifests:
        described = Manifests.load(settings.manifests, longhorn_namespace=settings.longhorn_namespace)
        require_pods(described, str(settings.manifests))
        return described, described.objects.origin(str(settings.manifests))
    from webhook.kube.collect import collect_at_terminal  # noqa: PLC0415 - the API client takes 1 s to import

    def parts(namespace: str) -> Sequence[Part]:
        of_rows = parts_of_rows(_namespace(settings, namespace), others=not settings.plan)
        return [*of_rows, *(parts_of_nodes() if settings.plan else ())]

    kubeconfig = Kubeconfig(file=settings.kubeconfig, context=settings.context)
    found = collect_at_terminal(kubeconfig, settings.longhorn_namespace, parts)
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


def _selection(settings: StatusSettings, namespace: str) -> Selection:
    labels = settings.selector.requirements if settings.selector else ()
    return Selection(
        namespace=namespace,
        names=vm_names(settings.names),
        labels=",".join(map(str, labels)),
        apart=settings.apart,
    )


def _plan(  # noqa: PLR0913, PLR0917 - what a plan is made of
    cluster: Manifests,
    rows: Sequence[VMStatus],
    selection: Selection,
    problems: Sequence[str],
    out: Output,
    origin: str,
) -> int:
    from webhook.plan.step import plan_steps  # noqa: PLC0415 - no other output needs it
    from webhook.status import plan_text  # noqa: PLC0415 - as plan_steps

    selected = selection.rows(rows)
    steps, version = plan_steps(cluster, [row for row in selected if row.state in TROUBLED])
    if steps:
        out.put(plan_text.render_plan(steps, origin, version))
    out.tell(plan_text.plan_summary(steps) if selected else nobody(selection, rows))
    return out.conclude(selection, rows, problems)
