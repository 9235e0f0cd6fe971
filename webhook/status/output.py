"""Output: writes rows in the format that the user chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final, TextIO

import msgspec

from webhook.component_base.errors import did_you_mean
from webhook.core.api.meta import NamespacedName
from webhook.core.observe.vm_status import VMStatus
from webhook.invocation import Invocation
from webhook.status import report, text
from webhook.status.report import Selection, exit_code
from webhook.status.settings import StatusSettings
from webhook.terminal import to_json, to_yaml

_TABLES: Final = ("table", "wide")
_NAME: Final = "name"


class Output:
    """Rows go to standard output, sentences about them to standard error, so that the rows can be piped.

    `existing`: all VMs that were read, also those without a row, with what `explain` calls each.
    """

    existing: Mapping[NamespacedName, str] = MappingProxyType({})

    def __init__(self, settings: StatusSettings, stdout: TextIO, stderr: TextIO, *, color: bool) -> None:
        self._format = settings.output
        self._stdout, self._stderr = stdout, stderr
        self._invocation = Invocation.of(settings)
        self.table = text.Table(
            wide=settings.output == "wide",
            namespaces=settings.all_namespaces,
            color=color,
            head=not settings.no_headers,
            invocation=self._invocation,
        )

    def write(self, text: str) -> None:
        """Write to standard output, and flush. Raises BrokenPipeError if the program that reads has ended."""
        self._stdout.write(text)
        self._stdout.flush()

    def put(self, text: str) -> None:
        """Write as `write` does; go on if the program that reads has ended: the exit code reports on the VMs."""
        with suppress(BrokenPipeError):
            self.write(text)

    def tell(self, *sentences: str) -> None:
        """Write sentences to standard error, a line each."""
        for sentence in sentences:
            self._stderr.write(f"{sentence}\n")

    def show(  # noqa: PLR0913 - by name
        self,
        selection: Selection,
        rows: Sequence[VMStatus],
        *,
        origin: str,
        at: str,
        settings: str,
        problems: Sequence[str],
    ) -> int:
        """Print those of all `rows` that the user asked for. Returns the exit code."""
        selected = selection.rows(rows)
        shown = selection.shown(selected)
        if self._format == _NAME:
            self.put("".join(f"{report.resource_name(row.name)}\n" for row in shown))
        elif self._format not in _TABLES:
            found = report.build_report(
                selection,
                selected,
                cluster=origin,
                at=at,
                settings=settings,
                problems=problems,
                invocation=self._invocation,
            )
            self._print(found)
        elif shown:
            self.put("".join(f"{line}\n" for line in self.table.lines(shown, at)))
        self.tell(text.summary(selected, apart=selection.apart) if selected else nobody(selection, rows))
        self.tell(f"the webhook's settings: {settings}")
        return self.conclude(selection, rows, problems)

    def conclude(self, selection: Selection, rows: Sequence[VMStatus], problems: Sequence[str]) -> int:
        """Write what could not be read, and which names none of all `rows` has. Returns the exit code."""
        selected = selection.rows(rows)
        missing = selection.missing(selected)
        self.tell(
            *(f"not everything could be read: {problem}" for problem in problems),
            *(self._absence(name, selection, rows) for name in missing),
        )
        return exit_code(selected, missing, problems, named=bool(selection.names))

    def _absence(self, name: str, selection: Selection, rows: Sequence[VMStatus]) -> str:
        within = [vm for vm in self.existing if selection.namespace in ("", vm.namespace)]
        here = sorted(vm for vm in within if vm.name == name)
        elsewhere = sorted(row.namespace for row in rows if row.name == name)
        if here:
            where = here[0].namespace
            explained = self._invocation.line(f"explain {self.existing[here[0]]}/{name} -n {where}")
            return f"{name}: the VM in namespace {where} does not run, or does not ask for co-scheduling: {explained}"
        if elsewhere:
            hint = f"; there is one in namespace {elsewhere[0]}: -n {elsewhere[0]}"
        else:
            hint = did_you_mean(name, {vm.name for vm in within})
        explained = self._invocation.line(f"explain vm/{name} -n {selection.namespace or 'NAMESPACE'}")
        sentence = f"{name}: no VM of this name runs and asks for co-scheduling in {selection.where}"
        return f"{sentence}{hint or f'; try: {explained}'}"

    def _print(self, value: object) -> None:
        if self._format == "yaml":
            self.put(to_yaml(msgspec.to_builtins(value)))
        else:
            self.put(to_json(value))


def nobody(selection: Selection, rows: Sequence[VMStatus]) -> str:
    """Return the sentence for an empty result: where the program looked, and how to see other VMs."""
    if selection.names:
        return f"none of these VMs runs and asks for co-scheduling in {selection.where}"
    labels = f" with labels {selection.labels}" if selection.labels else ""
    sentence = f"no running VM{labels} asks for co-scheduling in {selection.where}"
    if not selection.namespace:
        return sentence
    elsewhere = sum(row.namespace != selection.namespace for row in rows)
    others = f"{elsewhere} in other namespaces" if elsewhere else "VMs of other namespaces"
    return f"{sentence}; to see {others}: --all-namespaces"
