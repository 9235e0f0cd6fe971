"""The command status: read a cluster once, and print the rows of its VMs, or a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TextIO

from webhook.cluster_options import opt_in_all_unknown, vm_names
from webhook.component_base.errors import UserError
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core.opt_in import Policy
from webhook.core.scheduler.state.node_info import NO_HEADROOM
from webhook.objects.kinds import VIRT_LAUNCHER_POD
from webhook.objects.manifests import Manifests
from webhook.objects.parts import parts_of_nodes, parts_of_rows
from webhook.objects.vm_rows import misplaced_opt_ins, opt_in_all_in, require_pods, rows_from_manifests, unread
from webhook.status import report
from webhook.status.output import Output, nobody, now
from webhook.status.report import Asked
from webhook.status.settings import StatusSettings

if TYPE_CHECKING:
    from webhook.core.observe.vm_status import VMStatus
    from webhook.objects.parts import Part

_DEFAULT_NAMESPACE: Final = "default"


class NotReadable(UserError):
    """The pods of the VMs can't be read, so there is nothing to show."""


def run(chosen: StatusSettings, *, stdout: TextIO, stderr: TextIO, color: bool) -> int:
    """Run the command with these settings. `color`: whether `stdout` takes ANSI colors. Returns the exit code.

    Raises:
        UserError: no cluster can be reached, or the pods of its VMs can't be read.
    """
    out = Output(chosen, stdout, stderr, color=color)
    cluster, origin = _cluster(chosen)
    made, problems = cluster.objects.bundle, unread(cluster)
    policy = _policy(chosen, cluster, out)
    rows = rows_from_manifests(cluster, policy, selector=chosen.selector)
    asked = _asked(chosen, _namespace(chosen, made.namespace if made else _DEFAULT_NAMESPACE))
    out.tell(*asked.hints(misplaced_opt_ins(cluster)))
    at = made.at if made else now()
    if chosen.plan:
        return _plan(cluster, rows, asked, problems, out, f"{origin} at {at}")
    return out.show(asked, rows, origin=origin, at=at, problems=problems)


def _cluster(chosen: StatusSettings) -> tuple[Manifests, str]:
    """The cluster that files describe, or a live one; and its name for the user."""
    if chosen.manifests:
        described = Manifests.load(chosen.manifests, longhorn_namespace=chosen.longhorn_namespace)
        require_pods(described, str(chosen.manifests))
        return described, described.objects.origin(str(chosen.manifests))
    from webhook.kube.collect import collect_at_terminal  # noqa: PLC0415 - the API client takes 1 s to import

    def parts(namespace: str) -> Sequence[Part]:
        labels = chosen.selector.requirements if chosen.selector else ()
        of_rows = parts_of_rows(_namespace(chosen, namespace), ",".join(map(str, labels)))
        return [*of_rows, *(parts_of_nodes() if chosen.plan else ())]

    kubeconfig = Kubeconfig(file=chosen.kubeconfig, context=chosen.context)
    found = collect_at_terminal(kubeconfig, chosen.longhorn_namespace, parts)
    origin = found.bundle.cluster if found.bundle else ""
    problem = found.unread(VIRT_LAUNCHER_POD)
    if problem:
        hint = "your permissions, or choose a --namespace" if chosen.all_namespaces else "your permissions, --namespace"
        raise NotReadable(
            f"{origin}: {VIRT_LAUNCHER_POD.title}: {problem}; expected to list them: check {hint} and --context"
        )
    headroom = NO_HEADROOM if chosen.plan else None
    return Manifests(found, longhorn_namespace=chosen.longhorn_namespace, headroom=headroom), origin


def _namespace(chosen: StatusSettings, usual: str) -> str:
    """The namespace of the VMs, empty for all."""
    return "" if chosen.all_namespaces else chosen.namespace or usual


def _policy(chosen: StatusSettings, cluster: Manifests, out: Output) -> Policy:
    """Return the policy: the option --opt-in-all comes before the setting of the cluster.

    The mode of the webhook is not known here: a VM with the value `true` counts as asking for the default.
    """
    setting, unknown = (chosen.opt_in_all, "") if chosen.opt_in_all else opt_in_all_in(cluster)
    if unknown:
        out.tell(opt_in_all_unknown(unknown))
    return Policy(longhorn_namespace=chosen.longhorn_namespace, opt_in_all=setting)


def _asked(chosen: StatusSettings, namespace: str) -> Asked:
    labels = chosen.selector.requirements if chosen.selector else ()
    return Asked(
        namespace=namespace,
        names=vm_names(chosen.names),
        labels=",".join(map(str, labels)),
        apart=chosen.apart,
    )


def _plan(  # noqa: PLR0913, PLR0917 - what a plan is made of
    cluster: Manifests, rows: Sequence[VMStatus], asked: Asked, problems: Sequence[str], out: Output, origin: str
) -> int:
    from webhook.plan.planner import plan_steps  # noqa: PLC0415 - no other output needs it
    from webhook.status import plan_text  # noqa: PLC0415 - as plan_steps

    chosen = asked.rows(rows)
    steps, version = plan_steps(cluster, [row for row in chosen if row.state in report.TROUBLED])
    if steps:
        out.put(plan_text.render_plan(steps, origin, version))
    out.tell(plan_text.plan_summary(steps) if chosen else nobody(asked, rows))
    return out.conclude(asked, rows, problems)
