"""Invocation: how the user started this program, and on which cluster, for the commands that messages suggest."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

PLUGIN: Final = "kubectl-coschedule"  # kubectl runs this file for `kubectl coschedule`
EXECUTABLE: Final = PLUGIN if Path(sys.argv[0]).stem == PLUGIN else "kubevirt-coschedule"
PROGRAM: Final = EXECUTABLE.replace("kubectl-", "kubectl ")
LONGHORN_NAMESPACE: Final = "longhorn-system"
_CLUSTER_OPTIONS: Final = {
    "manifests": None,
    "kubeconfig": None,
    "context": None,
    "longhorn_namespace": LONGHORN_NAMESPACE,
}
"""The options that name a cluster, with their defaults."""
_OF_KUBECTL: Final = ("--kubeconfig ", "--context ")
_COMMAND: Final = re.compile(r"\b(?:kubectl|virtctl)(?= [a-z])")


class Invocation(NamedTuple):
    """What the user types for this program, and the options by which a command asks the same cluster."""

    program: str = PROGRAM
    options: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Any) -> Invocation:
        """Return the invocation of a command with these settings."""
        values = [(name, getattr(settings, name)) for name in _CLUSTER_OPTIONS]
        chosen = [(name.replace("_", "-"), value) for name, value in values if value != _CLUSTER_OPTIONS[name]]
        return cls(options=tuple(f"--{name} {_typed(value)}" for name, value in chosen))

    def line(self, arguments: str) -> str:
        """Return the command line that runs the program with these arguments on the same cluster."""
        return " ".join((self.program, arguments, *self.options))

    def addressed(self, text: str) -> str:
        """Return the text with each command of kubectl and virtctl in it for the same cluster."""
        options = [each for each in self.options if each.startswith(_OF_KUBECTL)]
        return _COMMAND.sub(lambda found: " ".join((found[0], *options)), text) if options else text


def _typed(value: Path | str) -> str:
    """Return the value as the user types it again; FILE for a pipe, which can be read only once."""
    return "FILE" if isinstance(value, Path) and value.is_fifo() else shlex.quote(str(value))
