"""Command lines as the programs read them. No command runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from webhook import cli
from webhook.component_base.command_line import Command
from webhook.component_base.options import Option


def values(commands: Iterable[Command], *words: str) -> dict[str, Any]:
    """Return the values of a command line by parameter; raise BadSettings if a value can't be used."""
    name, *rest = words
    (command,) = (each for each in commands if each.name == name)
    with command.make_context(name, rest) as context:
        return context.params


def command_defaults(command: str) -> Mapping[str, object]:
    """The defaults of this command's options, as texts, by flag."""
    (found,) = (each for each in cli.COMMANDS if each.name == command)
    return {param.opts[0]: param.default for param in found.params if isinstance(param, Option)}
