"""A program of ours: its own commands, and beside them help, completion and version, the same in each program."""

from __future__ import annotations

from collections.abc import Sequence

import click

from webhook import __version__
from webhook.component_base import completion
from webhook.component_base.command_line import Command, HelpContext, Program
from webhook.component_base.options import Argument, OneOf


def program(name: str, *, executable: str, description: str, commands: Sequence[Command]) -> Program:
    """The program.

    Args:
        name: how the help calls it.
        executable: the command that shells complete.
        description: what it is for, in one sentence.
        commands: its own, in the order of the help.
    """
    version = Command(
        "version",
        short_help="Print the version",
        help="Print the version.",
        examples=f"{name} version",
        callback=lambda: click.echo(f"{executable} {__version__}"),
    )
    made = Program(name, executable=executable, help=description, commands=[*commands, version])
    made.add_command(_help(made))
    made.add_command(_completion(made))
    flag = click.version_option(__version__, "-v", "--version", prog_name=executable, message="%(prog)s %(version)s")
    return flag(made)


def _help(program: Program) -> Command:
    def show(words: tuple[str, ...]) -> None:
        root = click.get_current_context().find_root()
        context = root
        if words:
            _, command, _ = program.resolve_command(root, list(words))
            assert command  # noqa: S101 - for the type checker: click raises for a name of no command
            context = HelpContext(command, info_name=command.name, parent=root)
        click.echo(context.get_help())

    def names(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
        return [name for name in program.commands if name.startswith(begun)]

    return Command(
        "help",
        short_help="Show the help of a command",
        help="Show the help of a command, without one the help of the program.",
        examples=f"{program.title} help {next(iter(program.commands))}",
        params=[Argument(["words"], nargs=-1, metavar="[COMMAND]", shell_complete=names)],
        callback=show,
    )


def _completion(program: Program) -> Command:
    command = f"{program.executable} completion"
    return Command(
        "completion",
        short_help="Print a script by which your shell completes what you type",
        help=f"Print a script by which your shell completes the commands, options and values of {program.executable}.",
        examples=f"""\
# bash: in this shell; in every new one
source <({command} bash)
echo 'source <({command} bash)' >> ~/.bashrc

# zsh, below compinit in ~/.zshrc
source <({command} zsh)

# fish
{command} fish | source""",
        params=[Argument(["shell"], type=OneOf(*completion.SHELLS))],
        callback=lambda shell: click.echo(completion.script(program, program.executable, shell), nl=False),
    )
