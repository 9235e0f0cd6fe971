"""The command line of both programs: click's, with examples and exit codes in the help, and one failure scope.

What a user can repair is a sentence on standard error and exit code 2. A reader that goes away (`| head`) is no error.
Invariant: nothing that is typed ends in a traceback.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import indent
from typing import Any, Final, TextIO

import click

from webhook.component_base import completion
from webhook.component_base.errors import BadSettings, UserError
from webhook.component_base.options import Option, problems

EXIT_BAD_INPUT: Final = 2
_EXIT_INTERRUPTED: Final = 130  # as shells have it: 128 and the number of SIGINT
_SETTINGS: Final = {"help_option_names": ["-h", "--help"]}
_LONG_TERM_CHARS: Final = 20
_INDENT_CHARS: Final = 4
_UNBROKEN_HYPHEN: Final = "\N{NON-BREAKING HYPHEN}"


class _HelpFormatter(click.HelpFormatter):
    """Wraps text between words only, for names with hyphens are for copying; texts of long terms go below them."""

    def write_text(self, text: str) -> None:
        super().write_text(text.replace("-", _UNBROKEN_HYPHEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        rows = [(term, text.replace("-", _UNBROKEN_HYPHEN)) for term, text in rows]
        if max(len(term) for term, _ in rows) > _LONG_TERM_CHARS:
            col_max = _INDENT_CHARS
        super().write_dl(rows, col_max, col_spacing)

    def getvalue(self) -> str:
        return super().getvalue().replace(_UNBROKEN_HYPHEN, "-")


class HelpContext(click.Context):
    """click's, with that help."""

    formatter_class = _HelpFormatter


class Command(click.Command):
    """One command of a program. Its callback takes the values by name, and returns the exit code (None is 0).

    Args:
        name: what the user types.
        examples: command lines, for the help.
        exit_codes: what they mean, for the help.
        more: click's own arguments.
    """

    context_class = HelpContext

    def __init__(
        self, name: str, *, examples: str, exit_codes: str = "0 when all went well, 2 for bad input.", **more: Any
    ) -> None:
        super().__init__(name, context_settings=_SETTINGS, **more)
        self.examples, self.exit_codes = examples, exit_codes

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line. Returns the words that no parameter took.

        Raises:
            BadSettings: every value that can't be used.
        """
        if not ctx.resilient_parsing and set(ctx.help_option_names) & set(args):
            args = ctx.help_option_names[:1]  # help comes before every mistake
        rest = super().parse_args(ctx, args)
        found = problems(ctx)
        if found:
            raise BadSettings(*(found[param] for param in self.params if param in found))
        return rest

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The description, and the examples below it."""
        super().format_help_text(ctx, formatter)
        with formatter.section("Examples"):
            formatter.write(indent(self.examples, "  ") + "\n")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """The environment and the exit codes, below everything."""
        named = [each for each in self.params if isinstance(each, Option)]
        if named:
            with formatter.section("Environment"):
                formatter.write_text(f"Each option is also a variable: {named[0].envvar} for {named[0].opts[0]}.")
        with formatter.section("Exit codes"):
            formatter.write_text(self.exit_codes)


class Program(click.Group):
    """A program: its commands in the order of its help.

    Args:
        name: how the help calls it.
        executable: the command that shells complete.
        more: click's own arguments.
    """

    context_class = HelpContext

    def __init__(self, name: str, *, executable: str, **more: Any) -> None:
        super().__init__(name, context_settings=_SETTINGS, **more)
        self.title, self.executable = name, executable

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands as they were given; click sorts them."""
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Where to read on."""
        formatter.write(f'\nUse "{self.title} COMMAND --help" for more about a command.\n')


def main(program: Program, argv: Sequence[str] | None = None) -> int:
    """Run the program with the words of `argv`, without them the process's own. Returns the exit code."""
    _open_streams()
    code = 0
    try:
        code = _run(program, list(sys.argv[1:] if argv is None else argv) or ["--help"])
        sys.stdout.flush()
    except BrokenPipeError:
        _drop(sys.stdout)
        return code  # the program that reads (head, less) has read enough
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _drop(sys.stdout)
        return _refuse([f"can't write standard output: {error.strerror}"])
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    return code


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


def _run(program: Program, words: list[str]) -> int:
    asked = os.environ.get(completion.variable(program.executable))
    if asked:
        click.echo(completion.completions(program, program.executable, asked))
        return 0
    see = " ".join([program.title, *(word for word in words[:1] if word in program.commands)])
    try:
        with program.make_context(program.title, words) as context:
            return int(program.invoke(context) or 0)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.UsageError as error:
        return _refuse([_sentence(program, error)], see)
    except BadSettings as error:
        return _refuse(str(error).splitlines(), see)
    except UserError as error:
        return _refuse(str(error).splitlines())


def _sentence(program: Program, error: click.UsageError) -> str:
    if isinstance(error, click.NoSuchCommand):
        problem = f"unknown command {error.command_name!r}: expected one of {', '.join(program.commands)}"
    elif isinstance(error, click.NoSuchOption):
        place = ": expected a command before it" if error.ctx and error.ctx.command is program else ""
        problem = f"unknown option {error.option_name!r}{place}"
    else:
        return error.format_message()
    return problem + "".join(f"; did you mean {near}?" for near in _near(error)[:1])


def _near(error: click.NoSuchCommand | click.NoSuchOption) -> list[str]:
    """What the user may have meant: first an option that begins so, then click's own guess."""
    begun = error.option_name if isinstance(error, click.NoSuchOption) and error.ctx else None
    params = error.ctx.command.params if begun and error.ctx else ()
    longer = [name for param in params for name in param.opts if begun and name.startswith(begun)]
    return [*longer, *(error.possibilities or ())]


def _refuse(problems: Sequence[str], see: str | None = None) -> int:
    try:
        for problem in problems:
            click.echo(f"error: {problem}", err=True)
        if see:
            click.echo(f"See '{see} --help' for usage.", err=True)
    except OSError:  # standard error can be on a full disk, too
        _drop(sys.stderr)
    return EXIT_BAD_INPUT
