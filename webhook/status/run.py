"""The command status: read the rows, or watch them; print them, or a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TextIO

from webhook.component_base.kubeconfig import Kubeconfig
from webhook.files.manifests import Manifests
from webhook.files.vm_rows import rows_from_manifests
from webhook.status import report
from webhook.status.follow import Lines, Screen
from webhook.status.output import Output, nobody, now
from webhook.status.report import Asked
from webhook.status.settings import StatusSettings

if TYPE_CHECKING:
    from webhook.kube.vm_status import VMStatuses
    from webhook.status.live_rows import LiveRows

_TYPES: Final = ("vm/", "vmi/")


def run(chosen: StatusSettings, *, stdout: TextIO, stderr: TextIO, color: bool) -> int:
    """Run the command with these settings. `color`: whether `stdout` takes ANSI colors. Returns the exit code.

    Raises:
        UserError: no cluster can be reached, or the pods of its VMs can't be read.
    """
    out = Output(chosen, stdout, stderr, color=color)
    if chosen.manifests:
        return _described(chosen, out)
    from webhook.status.live_rows import connect  # noqa: PLC0415 - the API client takes 1 s to import

    kubeconfig = Kubeconfig(file=chosen.kubeconfig, context=chosen.context)
    with connect(
        kubeconfig,
        longhorn_namespace=chosen.longhorn_namespace,
        namespace=chosen.namespace,
        everywhere=chosen.all_namespaces,
    ) as live:
        asked = _asked(chosen, live.namespace)
        if chosen.watch:
            _watch(live, asked, out)
        snapshot, problems = live.once()
        if chosen.plan:
            return _plan(live, asked, snapshot, problems, out)
        return out.show(asked, snapshot.rows, origin=live.origin, at=snapshot.at, problems=problems)


def _described(chosen: StatusSettings, out: Output) -> int:
    assert chosen.manifests  # noqa: S101 - for the type checker: the caller has checked it
    manifests = Manifests.load(chosen.manifests, longhorn_namespace=chosen.longhorn_namespace)
    rows = rows_from_manifests(manifests, chosen.longhorn_namespace)
    asked = _asked(chosen, "" if chosen.all_namespaces else chosen.namespace or "default")
    return out.show(asked, rows, origin=str(chosen.manifests), at=now(), problems=())


def _asked(chosen: StatusSettings, namespace: str) -> Asked:
    names = (_name(word) for word in chosen.names)
    return Asked(namespace=namespace, names=tuple(dict.fromkeys(names)), apart=chosen.apart)


def _name(word: str) -> str:
    """The name of a VM. `vm/NAME` is accepted because `explain` takes this form."""
    return next((word.removeprefix(type_) for type_ in _TYPES if word.startswith(type_)), word)


def _watch(live: LiveRows, asked: Asked, out: Output) -> None:
    """Watch until the user interrupts: the command line handles the KeyboardInterrupt."""
    if not out.is_screen:
        live.watch(Lines(out, asked, live.origin).show)
        return
    with Screen(out, asked, live.origin) as screen:
        live.watch(screen.show)


def _plan(live: LiveRows, asked: Asked, snapshot: VMStatuses, problems: Sequence[str], out: Output) -> int:
    from webhook.status import plan_text  # noqa: PLC0415 - as connect

    chosen = asked.rows(snapshot.rows)
    troubled = [row for row in chosen if row.state in report.TROUBLED]
    steps, version = live.plan(troubled) if troubled else ([], "")
    if steps:
        out.put(plan_text.render_plan(steps, live.origin, snapshot.at, version))
    out.tell(plan_text.plan_summary(steps) if chosen else nobody(asked, snapshot.rows))
    return out.conclude(asked, chosen, problems)
