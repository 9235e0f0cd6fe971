"""Command lines as the programs read them, and both programs as processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import click
from support.drivers.serving import ROOT
from support.waits import MAX_WAIT_SECONDS

from webhook import cli


def values(program: click.Group, *words: str) -> dict[str, Any]:
    """Return the values of a command line by parameter; raise click.UsageError if a value can't be used."""
    name, *rest = words
    with program.commands[name].make_context(name, rest) as context:
        return context.params


def command_defaults(command: str) -> Mapping[str, object]:
    """The defaults of this command's options, as texts, by flag."""
    options = [each for each in cli.COMMANDS.commands[command].params if isinstance(each, click.Option)]
    return {each.opts[0]: each.default for each in options}


EXAMPLES: Final = "manifests/examples/cluster"


def ended(
    command: Sequence[str], stdout: int = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A process of one of the programs, after its end."""
    return subprocess.run(  # noqa: S603 - our own programs, words of our own
        command,
        cwd=ROOT,
        env=os.environ | environment,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=MAX_WAIT_SECONDS,
    )


class Program(NamedTuple):
    """A program: how it is started, the name that shells know it by, and words that it takes."""

    module: str
    executable: str
    prints: str  # a command that prints a few lines, without a cluster; {} is a directory
    misspelled: str

    def run(self, *words: str, stdout: int = subprocess.PIPE, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return ended([sys.executable, "-m", self.module, *words], stdout, **environment)


WEBHOOK: Final = Program("webhook", "kubevirt-coschedule", f"status web01 -n prod-vms --manifests {EXAMPLES}", "statsu")
CERTS: Final = Program("certs", "kubevirt-coschedule-certs", "issue --dir {}", "issu")
