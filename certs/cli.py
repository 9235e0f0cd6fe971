"""argv -> one subcommand: keep, inspect or issue. Prints the help, and every message a user's mistake deserves."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from textwrap import fill, indent
from typing import Any, Final, NoReturn

from msgspec import Struct

from certs import options
from certs.errors import UserError
from certs.settings import BadSettings, ControllerSettings, ObjectNames, Option, resolve
from certs.x509 import pki

PROGRAM: Final = "python -m certs"
EXIT_BAD_INPUT: Final = 2
_HELP_WIDTH: Final = 100


class Command(Struct, frozen=True, kw_only=True):
    """One subcommand."""

    name: str
    summary: str
    examples: str
    options: tuple[Option, ...]
    run: Callable[[Mapping[str, Any]], int]
    exit_codes: str


def _keep(values: Mapping[str, Any]) -> int:
    keeping = ControllerSettings(**_fields(ControllerSettings, values))
    from certs.connection import Target  # noqa: PLC0415 - as above
    from certs.controller import run as program  # noqa: PLC0415 - the API client takes a second to import

    target = Target(kubeconfig=values["kubeconfig"], context=values["context"])
    return program.run(keeping, listen=values["listen"], target=target)


def _inspect(values: Mapping[str, Any]) -> int:
    from certs.inspect import run as inspection  # noqa: PLC0415 - what another subcommand does not need

    names, connect = values["name"], values["connect"]
    if values["dir"]:
        material, address = inspection.read_directory(values["dir"]), connect
    else:
        from certs.connection import Target  # noqa: PLC0415 - as above
        from certs.inspect import cluster  # noqa: PLC0415 - the API client takes a second to import

        kept = ObjectNames(**_fields(ObjectNames, values))
        names = names or kept.names
        material, service = cluster.read_material(
            Target(kubeconfig=values["kubeconfig"], context=values["context"]), kept
        )
        address = connect or service
    subject = inspection.Inspection(material=material, names=names or (), address=address, asked=connect is not None)
    return inspection.run(subject, output=values["output"], stdout=sys.stdout)


def _fields(kind: type[ObjectNames], values: Mapping[str, Any]) -> dict[str, Any]:
    return {field: values[field] for field in kind.__struct_fields__}


def _issue(values: Mapping[str, Any]) -> int:
    directory, names = values["dir"], values["name"]
    try:
        pair = pki.issue(names, now=datetime.now(UTC), lifetime=values["lifetime"])
    except ValueError as error:
        raise BadSettings(f"--name: got {','.join(names)!r}, expected DNS names and addresses: {error}") from None
    files = (("tls.key", pair.key, 0o600), ("tls.crt", pair.certificate, 0o644), ("ca.crt", pair.authority, 0o644))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content, mode in files:
            (directory / name).unlink(missing_ok=True)
            with os.fdopen(os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)
    except OSError as error:
        raise UserError(f"{error.filename or directory}: {error.strerror}; choose another with --dir") from None
    print(f"{directory}: tls.crt for {', '.join(names)}, its tls.key, and ca.crt that verifies it")  # noqa: T201
    return 0


COMMANDS: Final = (
    Command(
        name="keep",
        summary="Issue, renew and publish the webhook's certificate, for ever",
        examples=f"""\
# As manifests/certs runs it
{PROGRAM} keep

# From a laptop, for a cluster of a kubeconfig
{PROGRAM} keep --context staging --listen 127.0.0.1:8080""",
        options=options.KEEP,
        run=_keep,
        exit_codes="0 after SIGTERM or SIGINT, 2 for a setting, kubeconfig or address that can't be used. Whatever "
        "waiting can help is waited for.",
    ),
    Command(
        name="inspect",
        summary="Show certificate, authorities and handshake, and what is wrong with them",
        examples=f"""\
# The live cluster
{PROGRAM} inspect

# What a TLS handshake gets, from where the Service can't be reached
kubectl -n kubevirt-coschedule port-forward svc/kubevirt-coschedule 9443:443 &
{PROGRAM} inspect --connect 127.0.0.1:9443

# Files
{PROGRAM} inspect --dir /etc/kubevirt-coschedule/tls -o json""",
        options=options.INSPECT,
        run=_inspect,
        exit_codes="0 when all is good, 1 when something is wrong, 2 for bad input and a cluster that can't be read.",
    ),
    Command(
        name="issue",
        summary="Write a pair into a directory, for a laptop or a test",
        examples=f"{PROGRAM} issue --dir ./tls --name localhost,127.0.0.1",
        options=options.ISSUE,
        run=_issue,
        exit_codes="0 when the files are written, 2 for bad input.",
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    command = next((each for each in COMMANDS if each.name in words[:2]), None)
    if not words or (words[0] in ("-h", "--help", "help") and not command):
        _print(_program_help())
        return 0
    if command is None or (words[0] != command.name and words[0] != "help"):
        expected = ", ".join(each.name for each in COMMANDS)
        return _refuse([f"unknown command {words[0]!r}: expected one of {expected}"], see=PROGRAM)
    if words[0] == "help" or {"-h", "--help"} & set(words[1:]):
        _print(_command_help(command))
        return 0
    try:
        flags = vars(_parser(command).parse_args(words[1:]))
        return command.run(resolve(command.options, flags, os.environ))
    except UserError as error:
        return _refuse(error.problems, see=f"{PROGRAM} {command.name}" if isinstance(error, BadSettings) else None)
    except BrokenPipeError:
        # The reader (head, less) has gone: no error of ours, and nothing more can be written to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def _refuse(problems: Sequence[str], see: str | None) -> int:
    for problem in problems:
        _print(f"error: {problem}", sys.stderr)
    if see:
        _print(f"See '{see} --help' for usage.", sys.stderr)
    return EXIT_BAD_INPUT


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadSettings(message)


def _parser(command: Command) -> _Parser:
    parser = _Parser(add_help=False, allow_abbrev=False, prog=f"{PROGRAM} {command.name}")
    for option in command.options:
        names = (option.short, option.flag) if option.short else (option.flag,)
        parser.add_argument(*names, dest=option.field)
    return parser


def _program_help() -> str:
    listed = "\n".join(f"  {command.name:<8} {command.summary}" for command in COMMANDS)
    return f"""\
Looks after the certificate of the webhook: the Secret that its servers mount, and the caBundle that API servers trust.

Commands:
{listed}

Usage:
  {PROGRAM} COMMAND [options]

Use "{PROGRAM} COMMAND --help" for more about a command."""


def _command_help(command: Command) -> str:
    return "\n\n".join(
        (
            f"{command.summary}.",
            "Examples:\n" + indent(command.examples, "  "),
            "Options:\n" + "\n\n".join(map(_option_help, command.options)),
            f"Usage:\n  {PROGRAM} {command.name} [options]",
            "Exit codes:\n" + indent(fill(command.exit_codes, _HELP_WIDTH - 2), "  "),
        )
    )


def _option_help(option: Option) -> str:
    names = f"{option.short}, {option.flag}" if option.short else option.flag
    default = f"={option.default!r}" if option.default is not None else f" {option.placeholder}"
    required = "Required. " if option.default is None and not option.optional else ""
    text = f"{option.help} {required}[${option.variable}]"
    return f"    {names}{default}:\n" + indent(fill(text, _HELP_WIDTH - 8), "        ")


def _print(text: str, to: Any = None) -> None:
    print(text, file=to or sys.stdout)
