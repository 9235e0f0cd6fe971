"""The command status: read the rows; print them, or a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TextIO

from webhook.cluster_options import opt_in_all_unknown, vm_names
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core.opt_in import OptInAll, Policy
from webhook.objects.manifests import Manifests
from webhook.objects.vm_rows import misplaced_opt_ins, opt_in_all_in, require_pods, rows_from_manifests, unread
from webhook.status import report
from webhook.status.output import Output, nobody, now
from webhook.status.report import Asked
from webhook.status.settings import StatusSettings

if TYPE_CHECKING:
    from webhook.core.observe.vm_status import VMStatus
    from webhook.kube.client.api import Api
    from webhook.plan.step import Step


class _Planned(NamedTuple):
    """What a plan is made of. `steps_of` returns a step for each row, and the version of KubeVirt."""

    steps_of: Callable[[Sequence[VMStatus]], tuple[list[Step], str]]
    rows: Sequence[VMStatus]
    origin: str
    at: str


def run(chosen: StatusSettings, *, stdout: TextIO, stderr: TextIO, color: bool) -> int:
    """Run the command with these settings. `color`: whether `stdout` takes ANSI colors. Returns the exit code.

    Raises:
        UserError: no cluster can be reached, or the pods of its VMs can't be read.
    """
    out = Output(chosen, stdout, stderr, color=color)
    if chosen.manifests:
        return _described(chosen, out)
    from webhook.kube.cluster_setting import read_opt_in_all  # noqa: PLC0415 - as connect
    from webhook.status.live_rows import connect  # noqa: PLC0415 - the API client takes 1 s to import

    async def policy(api: Api) -> Policy:
        return _policy(chosen, out, ("off", "") if chosen.opt_in_all else await read_opt_in_all(api))

    kubeconfig = Kubeconfig(file=chosen.kubeconfig, context=chosen.context)
    with connect(
        kubeconfig,
        policy=policy,
        namespace=chosen.namespace,
        everywhere=chosen.all_namespaces,
        selector=chosen.selector,
    ) as live:
        asked = _asked(chosen, live.namespace)
        snapshot, problems = live.once()
        out.tell(*asked.hints(live.misplaced_opt_ins()))
        if chosen.plan:
            return _plan(_Planned(live.plan, snapshot.rows, live.origin, snapshot.at), asked, problems, out)
        return out.show(asked, snapshot.rows, origin=live.origin, at=snapshot.at, problems=problems)


def _described(chosen: StatusSettings, out: Output) -> int:
    assert chosen.manifests  # noqa: S101 - for the type checker: the caller has checked it
    manifests = Manifests.load(chosen.manifests, longhorn_namespace=chosen.longhorn_namespace)
    require_pods(manifests, str(chosen.manifests))
    policy = _policy(chosen, out, opt_in_all_in(manifests))
    rows = rows_from_manifests(manifests, policy, selector=chosen.selector)
    made, problems = manifests.objects.bundle, unread(manifests)
    asked = _asked(chosen, "" if chosen.all_namespaces else chosen.namespace or (made.namespace if made else "default"))
    out.tell(*asked.hints(misplaced_opt_ins(manifests)))
    origin, at = manifests.objects.origin(str(chosen.manifests)), made.at if made else now()
    if chosen.plan:
        from webhook.plan.files_planner import FilesPlanner  # noqa: PLC0415 - as connect

        return _plan(_Planned(FilesPlanner(manifests).steps, rows, origin, at), asked, problems, out)
    return out.show(asked, rows, origin=origin, at=at, problems=problems)


def _policy(chosen: StatusSettings, out: Output, found: tuple[OptInAll, str]) -> Policy:
    """Return the policy. `found`: the cluster's --opt-in-all, and why it is not known; the option comes before it.

    The mode of the webhook is not known here: a VM with the value `true` counts as asking for the default.
    """
    setting, unknown = (chosen.opt_in_all, "") if chosen.opt_in_all else found
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


def _plan(planned: _Planned, asked: Asked, problems: Sequence[str], out: Output) -> int:
    from webhook.status import plan_text  # noqa: PLC0415 - as connect

    chosen = asked.rows(planned.rows)
    troubled = [row for row in chosen if row.state in report.TROUBLED]
    steps, version = planned.steps_of(troubled) if troubled else ([], "")
    if steps:
        out.put(plan_text.render_plan(steps, planned.origin, planned.at, version))
    out.tell(plan_text.plan_summary(steps) if chosen else nobody(asked, planned.rows))
    return out.conclude(asked, planned.rows, problems)
