"""How a run shows its reports: as a table at a terminal, as log lines in a pod, as YAML for kubectl."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TextIO

from webhook.core.observe.vm_status import State, VMStatus, count_states
from webhook.core.reunite.reports import VMReport
from webhook.telemetry.record import LOGGER
from webhook.terminal import padded, printable, to_yaml

_HEADER: Final = (
    "To create these migrations: kubectl create -f - (they have a generateName, so kubectl apply refuses them).",
    "Since KubeVirt 1.5.0 the role admin may only read migrations: an administrator binds the ClusterRole",
    "kubevirt.io:migrate to you. KubeVirt needs version 1.6.0 or newer.",
    "A VM keeps the node selector of its migration until its next migration or start. Until then a descheduler with",
    "nodeFit does not evict the VM.",
)


_NOBODY: Final = "nothing to do: no VM that asks for co-scheduling was found"


def log(reports: Iterable[VMReport], *, dry_run: bool) -> None:
    """Write a log line for each VM."""
    for each in reports:
        fields = {"namespace": each.namespace, "vm": each.vm, "action": each.action, "because": each.message}
        level = LOGGER.warning if each.failed or each.reason.kind == "Warning" else LOGGER.info
        level("would" if dry_run else "reunite", extra={"fields": {**fields, "reason": each.reason.code}})


def print_table(reports: Sequence[VMReport], rows: Sequence[VMStatus], stdout: TextIO) -> None:
    """Print a line for each VM: what is or would be done, or the first rule that says no."""
    if not reports:
        stdout.write(f"{nothing_to_do(rows)}\n")
        return
    lines = [("NAMESPACE", "VM", "ACTION", "WHY")]
    lines += [(each.namespace, each.vm, each.action, each.message) for each in reports]
    shown = padded([[printable(cell) for cell in line] for line in lines])
    with suppress(BrokenPipeError):  # the Events are still to be written
        stdout.writelines("   ".join(cells).rstrip() + "\n" for cells in shown)


def print_list(
    reports: Sequence[VMReport],
    migrations: Mapping[tuple[str, str], Mapping[str, Any]],
    rows: Sequence[VMStatus],
    origin: str,
    stdout: TextIO,
) -> None:
    """Print the migrations as YAML. Comments say why, for each VM; a VM without a migration has a comment only."""
    is_empty = all(each.action != "migrate" for each in reports)
    stdout.writelines(f"# {printable(line)}\n" for line in (origin, *(() if is_empty else _HEADER)))
    for each in reports:
        migration = migrations.get((each.namespace, each.vm)) if each.action == "migrate" else None
        stdout.write("---\n" if migration else "\n")
        stdout.write(f"# {printable(f'{each.namespace}/{each.vm}: {each.message}')}\n")
        stdout.write(to_yaml(migration) if migration else "")
    if not reports:
        stdout.write(f"# {nothing_to_do(rows)}\n")


def nothing_to_do(rows: Sequence[VMStatus]) -> str:
    """Return in which states the VMs are, of which none is apart."""
    counts = ", ".join(f"{count} {state.value}" for state, count in count_states(rows).items() if count)
    stuck = "; `status` names what frees those that are stuck" if any(row.state is State.STUCK for row in rows) else ""
    return f"nothing to do: none of {len(rows)} VMs is apart ({counts}){stuck}" if rows else _NOBODY
