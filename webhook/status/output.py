"""Output: where rows go, in the format that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, TextIO

import msgspec

from webhook.core.observe import vm_status
from webhook.core.observe.vm_status import VMStatus
from webhook.status import exit_code, report, text
from webhook.status.report import Asked
from webhook.status_settings import StatusSettings

_TABLES: Final = ("table", "wide")


class Output:
    """Standard output for rows, standard error for what is said about them: so that rows can be piped."""

    def __init__(self, chosen: StatusSettings, stdout: TextIO, stderr: TextIO, *, color: bool) -> None:
        self._format = chosen.output
        self._stdout, self._stderr = stdout, stderr
        self.table = text.Table(wide=chosen.output == "wide", namespaces=chosen.all_namespaces, color=color)
        self.is_screen = stdout.isatty() and chosen.output in _TABLES

    def write(self, what: str) -> None:
        """To standard output, at once."""
        self._stdout.write(what)
        self._stdout.flush()

    def tell(self, *sentences: str) -> None:
        """To standard error, a line each."""
        for sentence in sentences:
            self._stderr.write(f"{sentence}\n")

    def show(self, asked: Asked, rows: Sequence[VMStatus], *, origin: str, at: str, problems: Sequence[str]) -> int:
        """Print what was asked for of all rows. Returns the exit code."""
        chosen = asked.rows(rows)
        if self._format not in _TABLES:
            self._print(report.of(asked, chosen, cluster=origin, at=at, problems=problems))
        elif shown := asked.shown(chosen):
            self.write("".join(f"{line}\n" for line in self.table.lines(shown, at)))
        self.tell(text.summary(vm_status.count_states(chosen)))
        return self.conclude(asked, chosen, problems)

    def conclude(self, asked: Asked, chosen: Sequence[VMStatus], problems: Sequence[str]) -> int:
        """Say what is missing from the rows that were asked for. Returns the exit code."""
        missing = asked.missing(chosen)
        self.tell(
            *(f"not everything could be read: {problem}" for problem in problems),
            *(_absence(name, asked) for name in missing),
        )
        return exit_code(chosen, missing)

    def _print(self, value: object) -> None:
        if self._format == "yaml":
            from webhook.terminal import to_yaml  # noqa: PLC0415 - PyYAML, for this alone

            self.write(to_yaml(msgspec.to_builtins(value)))
        else:
            self.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")

    def change(self, row: VMStatus, at: str) -> None:
        """One row that has changed, as a line."""
        if self._format in _TABLES:
            self.write(text.change(row, at) + "\n")
        else:
            self._line({"at": at, **msgspec.to_builtins(report.item(row))})

    def gone(self, namespace: str, name: str, at: str) -> None:
        """A VM that has no row any more, as a line."""
        if self._format in _TABLES:
            self.write(text.gone(namespace, name, at) + "\n")
        else:
            self._line({"at": at, "namespace": namespace, "name": name, "state": text.GONE})

    def _line(self, value: object) -> None:
        """One line of JSON: it is YAML too."""
        self.write(msgspec.json.encode(value).decode() + "\n")


def _absence(name: str, asked: Asked) -> str:
    return (
        f"{name}: no VM of this name runs and asks for co-scheduling in namespace {asked.namespace}; "
        f"try: explain vm/{name} -n {asked.namespace}"
    )


def now() -> str:
    """The time, as the API server writes times."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
