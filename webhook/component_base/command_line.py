"""The command line of both programs: click's, with exit code 2 for whatever a user can repair.

A reader that goes away (`| head`) is no error. Invariant: nothing that is typed ends in a traceback.
"""

from __future__ import annotations

import errno
import inspect
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Final, TextIO, TypeVar

import click
from click.shell_completion import shell_complete

from webhook import __version__
from webhook.component_base.errors import UserError
from webhook.component_base.options import overridden, parameters

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_INTERRUPTED: Final = 130  # as shells have it: 128 and the number of SIGINT
_HELP: Final = {"help_option_names": ["-h", "--help"]}
_UNWRAPPED: Final = "\b\n"  # click keeps the lines of such a paragraph
_T = TypeVar("_T", bound="DataclassInstance")


def program(name: str, *, executable: str, description: str) -> click.Group:
    """A program without commands, and with the option --version. `executable`: the name of its file."""
    made = click.Group(name, help=description, context_settings=_HELP)
    return click.version_option(__version__, "-v", "--version", prog_name=executable)(made)


def command(
    group: click.Group, settings: type[_T], prefix: str, *, examples: str, exit_codes: str
) -> Callable[[Callable[[_T], int]], click.Command]:
    """Make a command of a function that takes these settings and returns the exit code. Its docstring is the help.

    Args:
        group: the program.
        settings: a class of fields that options and arguments declare.
        prefix: what the environment variables begin with.
        examples: command lines, for the help.
        exit_codes: what they mean, for the help.
    """

    def make(run: Callable[[_T], int]) -> click.Command:
        shown = f"Examples:\n{indent(examples, '  ')}".replace("\n\n", f"\n\n{_UNWRAPPED}")
        made = click.Command(
            run.__name__,
            params=parameters(settings, prefix),
            callback=lambda **values: run(settings(**values | overridden(settings, click.get_current_context()))),
            help=f"{inspect.getdoc(run)}\n\n{_UNWRAPPED}{shown}",
            epilog=f"Exit codes: {exit_codes}",
            context_settings=_HELP,  # click keeps the option of the first help, also of one without the program
        )
        group.add_command(made)
        return made

    return make


def main(group: click.Group, executable: str, words: Sequence[str] | None = None) -> int:
    """Run the program with these words, without them the process's own. Returns the exit code."""
    _open_streams()
    code = 0
    try:
        code = _run(group, executable, list(sys.argv[1:] if words is None else words))
        sys.stdout.flush()
    except BrokenPipeError:  # the program that reads (head, less) has read enough
        _drop(sys.stdout)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _drop(sys.stdout)
        return _refuse(UserError(f"can't write standard output: {error.strerror}"))
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code


def _run(group: click.Group, executable: str, words: list[str]) -> int:
    variable = f"_{executable}_COMPLETE".replace("-", "_").upper()
    if asked := os.environ.get(variable):
        return shell_complete(group, {}, executable, variable, asked)
    try:
        with group.make_context(group.name, words) as context:
            return int(group.invoke(context) or 0)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        return _refuse(error)


def _refuse(error: click.ClickException) -> int:
    try:
        error.show()
    except OSError:  # standard error can be on a full disk, too
        _drop(sys.stderr)
    return error.exit_code


def _drop(stream: TextIO) -> None:
    """Let Python's last flush of a stream succeed: else it prints a traceback, and makes the exit code 120."""
    with suppress(OSError):  # a stream in memory has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_streams() -> None:
    """Whatever is written can be written: where a stream is closed, and where the name of a file is not text."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - until the process ends
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
