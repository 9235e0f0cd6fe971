"""How a run shows its reports: as a table at a terminal, as log lines in a pod."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TextIO

from webhook.core.reunite.reports import VMReport
from webhook.telemetry.record import LOGGER
from webhook.terminal import padded, printable


def log(reports: Iterable[VMReport], *, dry_run: bool) -> None:
    """Write a log line for each VM."""
    for each in reports:
        fields = {"namespace": each.namespace, "vm": each.vm, "action": each.action, "because": each.message}
        level = LOGGER.warning if each.failed or each.reason.kind == "Warning" else LOGGER.info
        level("would" if dry_run else "reunite", extra={"fields": {**fields, "reason": each.reason.code}})


def print_table(reports: Iterable[VMReport], stdout: TextIO) -> None:
    """Print a line for each VM: what is or would be done, or the first rule that says no."""
    lines = [("NAMESPACE", "VM", "ACTION", "WHY")]
    lines += [(each.namespace, each.vm, each.action, each.message) for each in reports]
    if len(lines) == 1:
        stdout.write("nothing to do: no VM is apart or stuck\n")
        return
    rows = padded([[printable(cell) for cell in line] for line in lines])
    with suppress(BrokenPipeError):  # the Events are still to be written
        stdout.writelines("   ".join(cells).rstrip() + "\n" for cells in rows)
