"""How a command that lists VMs prints them: VMs to standard output, sentences about them to standard error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TextIO

from webhook.core.api.kubevirt import VMI_KIND
from webhook.core.observe.vm_item import STOPPED, VMItem
from webhook.settings import VMListSettings
from webhook.terminal import to_json
from webhook.vms.item import Report
from webhook.vms.table import Cell, table


def resource_name(item: VMItem) -> str:
    """Return a VM's name as `kubectl get -o name` prints names. A VM that is stopped has no instance."""
    return f"{'virtualmachine' if item.state == STOPPED else VMI_KIND.lower()}.kubevirt.io/{item.name}"


def show(  # noqa: PLR0913 - by name
    report: Report, settings: VMListSettings, output: str, columns: Mapping[str, Cell], stdout: TextIO, *, color: bool
) -> None:
    """Print the VMs in this format: json, name, or a table with these columns.

    It goes on if the program that reads has ended: the exit code reports on the VMs.
    """
    items = report.items
    if output == "json":
        text = to_json(report)
    elif output == "name":
        text = as_lines(map(resource_name, items))
    else:
        namespaces, head = settings.all_namespaces, not settings.no_headers
        text = as_lines(table(items, columns, namespaces=namespaces, head=head, color=color))
    put(text, stdout)


def put(text: str, stdout: TextIO) -> None:
    """Write to standard output, and go on if the program that reads has ended."""
    with suppress(BrokenPipeError):
        stdout.write(text)
        stdout.flush()


def as_lines(lines: Iterable[str]) -> str:
    """Return the lines as a text."""
    return "".join(f"{line}\n" for line in lines)


def unread_lines(problems: Sequence[str]) -> list[str]:
    """Return a sentence for each thing that could not be read."""
    return [f"not everything could be read: {problem}" for problem in problems]
