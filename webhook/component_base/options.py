"""Options: the fields of a class of settings, from which click makes the parameters of a command.

A flag wins over its environment variable, which wins over the default. It wins over the variable of an option that it
excludes, too. The options of the cluster make a Kubeconfig:
which API server a program talks to, and as whom. The import of the client for it costs 66 MB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
from click.core import ParameterSource

from webhook.component_base.errors import UserError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class BadKubeconfig(UserError):
    """No way to an API server: the kubeconfig file or the service account can't be used."""


@dataclass(frozen=True, kw_only=True)  # no Struct: help and completion do without msgspec
class Kubeconfig:
    """What the user chose: a kubeconfig file, and a context of it. None for both is what kubectl would take."""

    file: Path | None = None
    context: str | None = None


@dataclass(frozen=True, kw_only=True)
class Context:
    """Where a kubeconfig leads: the name of its context and that context's namespace; None for what it does not name.

    `in_pod`: there is no kubeconfig file. It is the service account of the pod that this process runs in.
    """

    name: str | None = None
    namespace: str | None = None
    in_pod: bool = False


_MAX_PORT: Final = 65535
_DECLARED: Final = "option"
_EXCLUDED: Final = "excluded"
_text: Final = re.Match.group


class Parsed(click.ParamType[Any]):
    """A type whose values a function reads.

    Args:
        name: how the help calls a value.
        parse: text to value; its ValueError says what was expected.
    """

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name, self._parse = name, parse

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002 - click's signature
        """The name as it is; click alone would write it in upper case."""
        return self.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of a text."""
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(f"got {value!r}, {error}", param, ctx)


def matching(pattern: str, expected: str, made: Callable[[re.Match[str]], object] = _text) -> Callable[[str], Any]:
    """Return a function that reads a text of this pattern. It raises ValueError, with what was expected."""

    def parse(text: str) -> Any:
        if read := re.fullmatch(pattern, text):
            return made(read)
        raise ValueError(f"expected {expected}")

    return parse


class Address(NamedTuple):
    """A host and a TCP port, where a program listens or connects; an empty host is every interface."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(text: str) -> Address:
    """`HOST:PORT`, `:PORT` or `[IPV6]:PORT`.

    Raises:
        ValueError: says what was expected.
    """
    read = re.fullmatch(r"(?:\[(.+)\]|([^:]*)):([0-9]{1,5})", text)
    if not read or int(read[3]) > _MAX_PORT:
        raise ValueError(f"expected HOST:PORT, :PORT or [IPV6]:PORT with a port from 0 to {_MAX_PORT}")
    return Address(read[1] or read[2] or "", int(read[3]))


seconds: Final = matching(
    r"[0-9]{1,6}(\.[0-9]{1,3})?", "a number of seconds, 0 or more, such as 15 or 0.5", lambda read: float(read[0])
)
ADDRESS: Final = Parsed("ADDRESS", address)
FILE: Final = click.Path(path_type=Path, readable=False)  # the code that opens the file says what is wrong with it
FILE.name = "FILE"
NAME: Final = Parsed("NAME", matching(".+", "a name"))
ON_OR_OFF: Final = Parsed("[on|off]", matching("on|off", "on or off", lambda read: read[0] == "on"))
SECONDS: Final = Parsed("SECONDS", seconds)


def option(*short: str, excludes: Sequence[str] = (), **more: Any) -> Any:
    """Declare a field of a class of settings, and with it the flag of that name: `log_level` is `--log-level`.

    Args:
        short: a short form of the flag, such as `-n`.
        excludes: the fields beside which it makes no sense. The class refuses both.
        more: as click takes them for an option.
    """
    more = {"show_default": True, "show_envvar": True} | more
    return field(metadata={_DECLARED: (click.Option, short, more), _EXCLUDED: excludes})


def argument(**more: Any) -> Any:
    """Declare a field of a class of settings, for words beside the options. `more`: as click takes them."""
    return field(metadata={_DECLARED: (click.Argument, (), more)})


def parameters(settings: type[DataclassInstance], prefix: str) -> list[click.Parameter]:
    """Return what a command takes: a parameter for each field of its settings, those of its base classes last.

    `prefix`: what the environment variables begin with.
    """
    found = []
    for each in sorted(fields(settings), key=lambda each: each.name not in settings.__annotations__):
        kind, short, more = each.metadata[_DECLARED]
        if kind is click.Option:
            short = (f"--{each.name.replace('_', '-')}", *short)
            more = {"envvar": f"{prefix}_{each.name.upper()}"} | more
        found.append(kind([each.name, *short], **more))
    return found


def overridden(settings: type[DataclassInstance], context: click.Context) -> dict[str, Any]:
    """Return an absent value for each field whose variable counts for nothing: the user typed what excludes it."""
    source, values = context.get_parameter_source, context.params
    typed = {name for name, value in values.items() if value and source(name) is ParameterSource.COMMANDLINE}
    pairs = [(each.name, other) for each in fields(settings) for other in each.metadata.get(_EXCLUDED, ())]
    both_ways = [*pairs, *((other, name) for name, other in pairs)]
    lost = {name for name, other in both_ways if other in typed and source(name) is ParameterSource.ENVIRONMENT}
    return {name: False if values[name] is True else None for name in lost}


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """Which live cluster a command asks: as kubectl chooses it."""

    kubeconfig: Path | None = option(
        type=FILE,
        help="kubeconfig file that names the cluster. Without this option: the service account of the pod that the "
        "program runs in, else $KUBECONFIG, else ~/.kube/config.",
    )
    context: str | None = option(
        type=NAME, help="Context of the kubeconfig file. Without this option: the current context."
    )

    @property
    def client_config(self) -> Kubeconfig:
        """The API server, and the account for it."""
        return Kubeconfig(file=self.kubeconfig, context=self.context)
