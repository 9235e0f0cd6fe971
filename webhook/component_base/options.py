"""Options: the fields of a class of settings, from which click makes the parameters of a command.

A flag wins over its environment variable, which wins over the default.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.component_base.address import address
from webhook.component_base.kubeconfig import Kubeconfig

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_SECONDS: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,3})?")
_DECLARED: Final = "option"


class Parsed(click.ParamType[Any]):
    """A type whose values a function reads.

    Args:
        name: how the help calls a value.
        parse: text to value; its ValueError says what was expected.
    """

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of a text."""
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(f"got {value!r}, {error}", param, ctx)


class OnOrOff(click.Choice[Any]):
    """Whether a part of the program is on."""

    def __init__(self) -> None:
        super().__init__(["on", "off"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        """True for on."""
        return bool(super().convert(value, param, ctx) == "on")


def any_name(text: str) -> str:
    """Any text but an empty one.

    Raises:
        ValueError: says what was expected.
    """
    if not text:
        raise ValueError("expected a name")
    return text


def seconds(text: str) -> float:
    """A time in seconds, written as a plain decimal number.

    Raises:
        ValueError: says what was expected.
    """
    if not _SECONDS.fullmatch(text):
        raise ValueError("expected a number of seconds, 0 or more, such as 15 or 0.5")
    return float(text)


ADDRESS: Final = Parsed("ADDRESS", address)
FILE: Final = click.Path(path_type=Path, readable=False)  # the code that opens the file says what is wrong with it
FILE.name = "FILE"
NAME: Final = Parsed("NAME", any_name)
NAMESPACE: Final = Parsed("NAMESPACE", any_name)
ON_OR_OFF: Final = OnOrOff()
SECONDS: Final = Parsed("SECONDS", seconds)


def option(*short: str, **more: Any) -> Any:
    """Declare a field of a class of settings, and with it the flag of that name: `log_level` is `--log-level`.

    Args:
        short: a short form of the flag, such as `-n`.
        more: as click takes them for an option.
    """
    return field(metadata={_DECLARED: lambda name, prefix: _option(name, prefix, short, more)})


def argument(**more: Any) -> Any:
    """Declare a field of a class of settings, for words beside the options. `more`: as click takes them."""
    return field(metadata={_DECLARED: lambda name, _: click.Argument([name], **more)})


def _option(name: str, prefix: str, short: tuple[str, ...], more: dict[str, Any]) -> click.Option:
    flag, variable = f"--{name.replace('_', '-')}", f"{prefix}_{name.upper()}"
    return click.Option([name, flag, *short], envvar=variable, show_envvar=True, show_default=True, **more)


def parameters(settings: type[DataclassInstance], prefix: str) -> list[click.Parameter]:
    """Return what a command takes: a parameter for each field of its settings, those of a base class after its own.

    `prefix`: what the environment variables begin with.
    """
    bases = [base for base in settings.__bases__ if is_dataclass(base)]
    inherited = {each.name for base in bases for each in fields(base)}
    own = [_parameter(each, prefix) for each in fields(settings) if each.name not in inherited]
    return own + [each for base in bases for each in parameters(base, prefix)]


def _parameter(declared: Field[Any], prefix: str) -> click.Parameter:
    made: click.Parameter = declared.metadata[_DECLARED](declared.name, prefix)
    return made


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """Which live cluster a command asks: as kubectl chooses it."""

    kubeconfig: Path | None = option(
        type=FILE,
        help="kubeconfig file that names the cluster. Without this option: the service account of the pod that the "
        "program runs in, else $KUBECONFIG, else ~/.kube/config.",
    )
    context: str | None = option(
        type=NAME,
        help="Context of the kubeconfig file. Without this option: the current context.",
    )

    @property
    def client_config(self) -> Kubeconfig:
        """The API server, and the account for it."""
        return Kubeconfig(file=self.kubeconfig, context=self.context)
