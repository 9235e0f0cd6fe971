"""Command lines as the programs read them. No command runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

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
