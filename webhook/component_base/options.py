"""Options: click's, with types of ours, and with what is wrong with their values gathered instead of raised.

A flag wins over its environment variable, which wins over the default. Invariant: a command reports every value that
it can't use at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click
from click.core import ParameterSource

from webhook.component_base.address import address
from webhook.component_base.errors import did_you_mean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_COUNT: Final = re.compile("[0-9]{1,6}")
_SECONDS: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,3})?")


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


class OneOf(click.Choice[str]):
    """One of a few words, in that spelling."""

    def __init__(self, *words: str) -> None:
        super().__init__(words)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The word itself."""
        if value not in self.choices:
            hint = did_you_mean(value, self.choices)
            self.fail(f"got {value!r}, expected {', '.join(self.choices[:-1])} or {self.choices[-1]}{hint}", param, ctx)
        return value


class OnOrOff(OneOf):
    """Whether a part of the program is on."""

    def __init__(self) -> None:
        super().__init__("on", "off")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """True for on."""
        return super().convert(value, param, ctx) == "on"


class _TrueOrFalse(click.types.BoolParamType):
    """What the variable of a flag without a value says."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        if value not in (True, False, "true", "false"):
            self.fail(f"got {value!r}, expected true or false", param, ctx)
        return value in (True, "true")


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


def count(text: str) -> int:
    """How many of something.

    Raises:
        ValueError: says what was expected.
    """
    if not _COUNT.fullmatch(text):
        raise ValueError("expected a number, 0 or more, such as 100")
    return int(text)


ADDRESS: Final = Parsed("ADDRESS", address)
COUNT: Final = Parsed("NUMBER", count)
NAME: Final = Parsed("NAME", any_name)
NAMESPACE: Final = Parsed("NAMESPACE", any_name)
SECONDS: Final = Parsed("SECONDS", seconds)
FILE: Final = click.Path(path_type=Path, readable=False)  # the code that opens the file says what is wrong with it
FILE.name = "FILE"


class _Gathered(click.Parameter):
    """A parameter whose problem is kept in the context until every parameter was read."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """The value, and the words that are left; None where the value can't be used."""
        try:
            return super().handle_parse_result(ctx, opts, args)
        except click.MissingParameter:
            instead = f" (or set {self.envvar})" if self.envvar else ""
            problem = f"{self._typed_as}: got nothing, expected {self.make_metavar(ctx)}{instead}"
        except click.BadParameter as error:
            from_environment = ctx.get_parameter_source(self.name) is ParameterSource.ENVIRONMENT
            problem = f"{self.envvar if from_environment else self._typed_as}: {error.message}"
        problems(ctx)[self] = problem
        return None, args

    @property
    def _typed_as(self) -> str:
        return self.opts[0]


class Option(_Gathered, click.Option):
    """One setting: a flag, and an environment variable that the flag wins over.

    Args:
        prefix: what the environment variable begins with; the flag's name follows, in capitals.
        names: the flag, and a short form of it.
        more: click's own arguments. `is_flag` is for a flag without a value, which is then true.
    """

    envvar: str

    def __init__(self, prefix: str, *names: str, **more: Any) -> None:
        variable = prefix + names[0].removeprefix("--").replace("-", "_").upper()
        if more.get("is_flag"):
            more["type"] = _TrueOrFalse()
        super().__init__(names, envvar=variable, show_default=True, **more)

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:  # noqa: ARG002 - click's signature
        """What the environment says; unlike click's, an empty text is a text."""
        return os.environ.get(self.envvar)


class Argument(_Gathered, click.Argument):
    """A word beside the options."""

    @property
    def _typed_as(self) -> str:
        return self.human_readable_name


def problems(ctx: click.Context) -> dict[click.Parameter, str]:
    """What is wrong with the values of this command line, by parameter."""
    return cast("dict[click.Parameter, str]", ctx.meta.setdefault(__name__, {}))


_DECLARED: Final = "option"


def option(*short: str, **more: Any) -> Any:
    """Declare a field of a class of settings, and with it the flag of that name: `log_level` is `--log-level`.

    Args:
        short: a short form of the flag, such as `-n`.
        more: as for Option; `is_argument` is for words beside the options.
    """
    return field(metadata={_DECLARED: (short, more)})


def parameters(settings: type[DataclassInstance], prefix: str) -> list[click.Parameter]:
    """Return what a command takes: a parameter for each field of its settings, those of a base class after its own.

    `prefix`: what the environment variables begin with. The field's value is what its parameter makes.
    """
    bases = [base for base in settings.__bases__ if is_dataclass(base)]
    inherited = {each.name for base in bases for each in fields(base)}
    own = [_parameter(each, prefix) for each in fields(settings) if each.name not in inherited]
    return own + [each for base in bases for each in parameters(base, prefix)]


def _parameter(declared: Field[Any], prefix: str) -> click.Parameter:
    short, more = declared.metadata[_DECLARED]
    if more.get("is_argument"):
        return Argument([declared.name], **{name: value for name, value in more.items() if name != "is_argument"})
    return Option(prefix, f"--{declared.name.replace('_', '-')}", *short, **more)


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
