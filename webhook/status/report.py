"""Report: the rows that the user asked for, in the form that `-o json` and `-o yaml` print."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.api.kubevirt import VMI_KIND
from webhook.core.api.meta import NamespacedName
from webhook.core.observe import vm_status
from webhook.core.observe.vm_item import VMItem, vm_item
from webhook.core.observe.vm_status import SEVERITY, TROUBLED, State, VMStatus
from webhook.invocation import Invocation


class Report(Struct, rename="camel", frozen=True, kw_only=True):
    """The rows. `settings`: those of the webhook. `problems`: what could not be read.

    `missing`: the names for which there is no row.
    """

    cluster: str
    at: str
    settings: str
    summary: dict[State, int]
    problems: list[str]
    missing: list[str]
    items: list[VMItem]


class Selection(Struct, frozen=True, kw_only=True):
    """The VMs that the user asked for.

    `namespace` is empty for all namespaces, `names` for all names; `labels` says which labels their pods have.
    `apart`: show only VMs that are apart, stuck or not running.
    """

    namespace: str
    names: tuple[str, ...] = ()
    labels: str = ""
    apart: bool = False

    @property
    def where(self) -> str:
        """The namespace in words."""
        return f"namespace {self.namespace}" if self.namespace else "any namespace"

    def rows(self, rows: Iterable[VMStatus]) -> list[VMStatus]:
        """Return the rows of these VMs, in whatever state: the worst first, then by namespace and name."""
        selected = [row for row in rows if self._is_of(row)]
        return sorted(selected, key=lambda row: (SEVERITY[row.state], row.namespace, row.name))

    def shown(self, rows: Iterable[VMStatus]) -> list[VMStatus]:
        """Return the rows that are shown, of those that `rows` returned."""
        return [row for row in rows if not self.apart or row.state in TROUBLED]

    def hints(self, found: Mapping[NamespacedName, Sequence[str]]) -> Iterator[str]:
        """Yield the hints on these VMs, a sentence each."""
        for key, hints in sorted(found.items()):
            if self.namespace in ("", key.namespace) and (not self.names or key.name in self.names):
                yield from (f"{key.namespace}/{key.name}: {hint}" for hint in hints)

    def missing(self, rows: Iterable[VMStatus]) -> list[str]:
        """Return the names that none of these rows has."""
        existing = {row.name for row in rows}
        return [name for name in self.names if name not in existing]

    def _is_of(self, row: VMStatus) -> bool:
        return self.namespace in ("", row.namespace) and (not self.names or row.name in self.names)


def build_report(  # noqa: PLR0913 - by name
    selection: Selection,
    selected: Collection[VMStatus],
    *,
    cluster: str,
    at: str,
    settings: str,
    problems: Sequence[str],
    invocation: Invocation,
) -> Report:
    """Return the report on the rows that `Selection.rows` chose."""
    return Report(
        cluster=cluster,
        at=at,
        settings=settings,
        summary=vm_status.count_states(selected),
        problems=list(problems),
        missing=selection.missing(selected),
        items=[
            vm_item(row, invocation.remedy_text(row.remedy), row.said_by_reunite) for row in selection.shown(selected)
        ],
    )


def resource_name(name: str) -> str:
    """Return a VM's name as `kubectl get -o name` prints names. A VM that runs always is a VirtualMachineInstance."""
    return f"{VMI_KIND.lower()}.kubevirt.io/{name}"


EXIT_TOGETHER: Final = 0
EXIT_APART: Final = 1
EXIT_UNKNOWN: Final = 2


def exit_code(rows: Sequence[VMStatus], missing: Sequence[str], problems: Sequence[str], *, named: bool = False) -> int:
    """Return 2 if a name has no row; else 1 if a VM is in trouble; else 2 if something was not read; else 0.

    `named`: whether the user named VMs. Then 0 says of each that it is together, and 1 that one is in another state.
    """
    if missing:
        return EXIT_UNKNOWN
    if any(row.state in TROUBLED for row in rows):
        return EXIT_APART
    if problems or any(row.state is State.UNKNOWN for row in rows):
        return EXIT_UNKNOWN
    return EXIT_APART if named and any(row.state is not State.TOGETHER for row in rows) else EXIT_TOGETHER
