"""Command lines as the programs read them. No command runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.component_base.command_line import Command
from webhook.component_base.options import Option


def values(commands: Iterable[Command], *words: str) -> dict[str, Any]:
    """Return the values of a command line by parameter; raise BadSettings if a value can't be used."""
    name, *rest = words
    (command,) = (each for each in commands if each.name == name)
    with command.make_context(name, rest) as context:
        return context.params


def by_flag(options: Iterable[Option]) -> Mapping[str, Option]:
    """The options by their flags."""
    return {option.opts[0]: option for option in options}
