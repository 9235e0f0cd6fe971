"""Shell completion: click's; it completes a value behind `--flag=`, too. For a plugin of kubectl, kubectl's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete


class _Joined(ShellComplete):
    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        """Whole words: the shell replaces `--flag=val` by one of them, where click gives the values alone."""
        found = super().get_completions(args, incomplete)
        flag, equals, _ = incomplete.partition("=")
        if flag.startswith("-") and equals:
            for item in found:
                item.value = f"{flag}={item.value}"
        return found


class _Bash(_Joined, BashComplete):
    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the one that is begun. To bash, an equals sign is a word of its own."""
        args, incomplete = super().get_completion_args()
        return [word for word in args if word != "="], incomplete


class _Fish(_Joined, FishComplete):
    pass


class _Zsh(_Joined, ZshComplete):
    pass


_SHELLS: Final = {"bash": _Bash, "fish": _Fish, "zsh": _Zsh}
SHELLS: Final = tuple(_SHELLS)
# Cobra's ShellCompDirective, the last line that kubectl reads of a plugin's completions (plugin_completion.go).
_FILES, _NO_FILES = ":0", ":4"


def variable(executable: str) -> str:
    """The environment variable by which a shell asks the program for completions, as SHELL_complete."""
    return f"_{executable}_COMPLETE".replace("-", "_").upper()


def script(program: click.Group, executable: str, shell: str) -> str:
    """What one of SHELLS reads once, so that it asks the program from then on."""
    return _SHELLS[shell](program, {}, executable, variable(executable)).source()


def completions(program: click.Group, executable: str, asked: str) -> str:
    """The completions of the command line that a shell asks about; none for a shell that is not one of SHELLS."""
    shell = _SHELLS.get(asked.removesuffix("_complete"))
    return shell(program, {}, executable, variable(executable)).complete() if shell else ""


def completions_for_kubectl(program: click.Group, executable: str, words: Sequence[str]) -> str:
    """What `kubectl_complete-PLUGIN` prints for the words behind the plugin's name; the last word is begun."""
    *before, begun = words or [""]
    found = _Fish(program, {}, executable, variable(executable)).get_completions(before, begun)
    plain = [item for item in found if item.type == "plain"]
    lines = [f"{item.value}\t{item.help}" if item.help else str(item.value) for item in plain]
    return "\n".join([*lines, _NO_FILES if len(plain) == len(found) else _FILES])
