"""argv -> one subcommand. Prints the help, every message a user's mistake deserves, and gives the exit code.

Nothing heavy is imported before a subcommand is known, so that help and errors are instant.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from textwrap import fill, indent
from typing import Any, Final, NoReturn

from msgspec import Struct

from webhook import __version__, options, settings
from webhook.errors import UserError
from webhook.options import BadSettings, Option

PROGRAM: Final = "kubevirt-coschedule"
EXIT_BAD_INPUT: Final = 2
_HELP_WIDTH: Final = 100


class Command(Struct, frozen=True, kw_only=True):
    """One subcommand: its options, what its help says, and what runs it with the resolved values.

    One that takes words beside its options says in `words` how its help calls them, and gets them as value `names`.
    """

    name: str
    summary: str
    description: str
    examples: str
    options: tuple[Option, ...]
    words: str = ""
    run: Callable[[Mapping[str, Any]], int]
    exit_codes: str = "0 when all went well, 2 for bad input."


def _serve(values: Mapping[str, Any]) -> int:
    from webhook.app import run as app  # noqa: PLC0415 - aiohttp is for serving only

    return app.serve(settings.ServeSettings(**values))


def _explain(values: Mapping[str, Any]) -> int:
    chosen = settings.ExplainSettings(**values)
    from webhook.explain import run  # noqa: PLC0415 - see the module

    return run.run(chosen, stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr, color=_color())


def _status(values: Mapping[str, Any]) -> int:
    chosen = settings.StatusSettings(**values)
    from webhook.status import run  # noqa: PLC0415 - see the module

    return run.run(chosen, stdout=sys.stdout, stderr=sys.stderr, color=_color())


def _color() -> bool:
    """Whether standard output takes ANSI colors."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _demo(_: Mapping[str, Any]) -> int:
    from webhook import demo  # noqa: PLC0415 - see the module

    return demo.run(sys.stdout)


def _version(_: Mapping[str, Any]) -> int:
    print(f"{PROGRAM} {__version__}")  # noqa: T201 - what the command is for
    return 0


COMMANDS: Final = (
    Command(
        name="serve",
        summary="Run the admission webhook",
        description="Run the admission webhook over TLS: the API server posts AdmissionReviews to "
        "/mutate/virt-launcher and /mutate/share-manager. What it reads of the cluster it lists and watches, and "
        "answers from memory.",
        examples=f"""\
# In a pod, as its service account; this is what the manifests run
{PROGRAM} serve --tls-cert-file tls.crt --tls-private-key-file tls.key

# A cluster that files describe, on loopback only, with a setting from the environment
{options.ENVIRONMENT_PREFIX}LISTEN=127.0.0.1:9443 {PROGRAM} serve --manifests manifests/examples/cluster \\
  --tls-cert-file tls.crt --tls-private-key-file tls.key""",
        options=settings.SERVE,
        run=_serve,
        exit_codes="0 after SIGTERM or SIGINT, 1 when a second one cut it short, 2 for a setting, file, certificate or "
        "address that can't be used.",
    ),
    Command(
        name="explain",
        summary="Show what is decided for a VM, pod or Longhorn volume, and why",
        description="Show what is decided for a Pod, VirtualMachine, VirtualMachineInstance, AdmissionReview or "
        "Longhorn volume: each claim's way to its share-manager, or the volume's to its VMs, each node's verdict, the "
        "decision, and the affinity before and after. For a VM the pod that it would become is derived; for a volume "
        "the share-manager pod of its next start. The objects come from a live cluster by name, or from FILE; the "
        "cluster is a live one, read as kubectl would (and without kubectl), or one that manifests describe.",
        examples=f"""\
# Why does my VM start where it does?
{PROGRAM} explain vm/db01 -n prod-vms

# All of these, in another cluster; why is that pod where it is?
{PROGRAM} explain --context staging vm/db01 vm/db02 pod/virt-launcher-db03-x7k2p

# Where would the share-manager of a Longhorn volume go; why is its pod where it is?
{PROGRAM} explain volume/pvc-db01
{PROGRAM} explain pod/share-manager-pvc-db01 -n longhorn-system

# A VM that does not exist yet, in the live cluster
{PROGRAM} explain -f manifests/examples/virtual-machine.yaml

# Without any cluster
{PROGRAM} explain -f manifests/examples/virtual-machine.yaml --manifests manifests/examples/cluster

# A cluster as it was at one moment
kubectl get -A -o yaml node,csinode,pv,pvc,pod,sharemanagers.longhorn.io,nodes.longhorn.io,\\
volumeattachments.longhorn.io > cluster.yaml
kubectl get vm db01 -o yaml | {PROGRAM} explain -f - --manifests cluster.yaml -o json""",
        options=settings.EXPLAIN,
        words="[TYPE/NAME ...]",
        run=_explain,
        exit_codes="0 when every object is placed (required or preferred), 1 when one is left unchanged, 2 for bad "
        "input, for an object that is not there, and for a cluster that can't be reached.",
    ),
    Command(
        name="status",
        summary="Show which VMs are with their share-manager",
        description="Show each VM that runs and asks for co-scheduling: its node, the node of each share-manager, "
        "whether they are together, since when, and why. The cluster is read as kubectl would.",
        examples=f"""\
# The VMs of a namespace, and of all; with more columns
{PROGRAM} status -n prod-vms
{PROGRAM} status -A -o wide

# Is this VM with its share-manager? By the exit code
{PROGRAM} status db01 -n prod-vms && echo yes

# What is not as it should be, as it changes
{PROGRAM} status -A --apart --watch

# What would bring VMs together: look, then choose; live migrations need KubeVirt 1.5 or newer
{PROGRAM} status -n prod-vms --plan
{PROGRAM} status -n prod-vms --plan db01 | kubectl create -f -

# A cluster as it was at one moment
kubectl get pv,pvc,pod,sharemanagers.longhorn.io -A -o yaml > cluster.yaml
{PROGRAM} status -A --manifests cluster.yaml""",
        options=settings.STATUS,
        words="[VM ...]",
        run=_status,
        exit_codes="0 when no VM is apart or stuck, 1 when one is, 2 for bad input, a VM that is not there, or what "
        "could not be read.",
    ),
    Command(
        name="demo",
        summary="Serve the example cluster for a moment, and check its own answers",
        description="Start the webhook on loopback with a throwaway certificate over the example cluster, send it the "
        "example AdmissionReviews through a real TLS connection, and show what came back.",
        examples=f"# See it work\n{PROGRAM} demo",
        options=(),
        run=_demo,
        exit_codes="0 when every answer is the expected one, 1 when one is not, 2 for bad input.",
    ),
    Command(
        name="version",
        summary="Print the version",
        description="Print the version.",
        examples=f"{PROGRAM} version",
        options=(),
        run=_version,
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit code: 0, 1 where a subcommand documents it, 2 for bad input."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        named = [command for command in COMMANDS if words[1:2] == [command.name]]
        _print(_command_help(named[0]) if named else _program_help())
        return 0
    if words[0] in ("--version", "-v"):
        return _version({})
    command = next((command for command in COMMANDS if command.name == words[0]), None)
    if command is None:
        expected = ", ".join(command.name for command in COMMANDS)
        return _refuse([f"unknown command {words[0]!r}: expected one of {expected}"], see=PROGRAM)
    if {"-h", "--help"} & set(words[1:]):
        _print(_command_help(command))
        return 0
    return _run(command, words[1:])


def _run(command: Command, words: Sequence[str]) -> int:
    """One failure scope for a whole subcommand: what a user can mend is a sentence and exit code 2."""
    try:
        flags, names = _flags(command, words)
        values = options.resolve(command.options, flags, os.environ)
        return command.run({**values, "names": names} if command.words else values)
    except UserError as error:
        see = f"{PROGRAM} {command.name}" if isinstance(error, BadSettings) else None
        return _refuse(str(error).splitlines(), see=see)
    except BrokenPipeError:
        # The reader (head, less) has gone: no error of ours, and nothing more can be written to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def _refuse(problems: Sequence[str], see: str | None = None) -> int:
    for problem in problems:
        _print(f"error: {problem}", sys.stderr)
    if see:
        _print(f"See '{see} --help' for usage.", sys.stderr)
    return EXIT_BAD_INPUT


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadSettings(message)


def _flags(command: Command, words: Sequence[str]) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """(field -> text of each flag, the words beside them, which may stand anywhere)."""
    parser = _Parser(add_help=False, allow_abbrev=False, prog=f"{PROGRAM} {command.name}")
    for option in command.options:
        names = (option.short, option.flag) if option.short else (option.flag,)
        if option.switch:
            parser.add_argument(*names, dest=option.field, action="store_const", const="true")
        else:
            parser.add_argument(*names, dest=option.field)
    if command.words:
        parser.add_argument("names", nargs="*")
    flags = vars(parser.parse_intermixed_args(words))
    return flags, tuple(flags.pop("names", ()))


def _program_help() -> str:
    listed = "\n".join(f"  {command.name:<10} {command.summary}" for command in COMMANDS)
    return f"""\
Starts KubeVirt VMs on the node of the Longhorn share-manager that serves their ReadWriteMany disk.

Commands:
{listed}

Usage:
  {PROGRAM} COMMAND [options]

Use "{PROGRAM} COMMAND --help" for more about a command."""


def _command_help(command: Command) -> str:
    parts = [_fill(command.description, _HELP_WIDTH), "Examples:\n" + indent(command.examples, "  ")]
    if command.options:
        parts.append("Options:\n" + "\n\n".join(map(_option_help, command.options)))
    usage = " ".join(filter(None, (PROGRAM, command.name, command.words, "[options]" if command.options else "")))
    parts += [f"Usage:\n  {usage}", "Exit codes:\n" + indent(_fill(command.exit_codes, _HELP_WIDTH - 2), "  ")]
    return "\n\n".join(parts)


def _option_help(option: Option) -> str:
    names = f"{option.short}, {option.flag}" if option.short else option.flag
    default = f"={option.default!r}" if option.default is not None else f" {option.placeholder}"
    if option.switch:
        default = ""
    required = option.default is None and not option.optional
    text = f"{option.help} {'Required. ' if required else ''}[${option.variable}]"
    return f"    {names}{default}:\n" + indent(_fill(text, _HELP_WIDTH - 8), "        ")


def _fill(text: str, width: int) -> str:
    """Wrapped between words: names with hyphens are for copying."""
    return fill(text, width, break_on_hyphens=False)


def _print(text: str, to: Any = None) -> None:
    print(text, file=to or sys.stdout)
