"""The options of `serve` that decide, as a container of the webhook states them: its arguments and its environment.

Invariant: a value that comes from elsewhere is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from webhook.objects.api.webhooks import EnvVar, ServeContainer, ServePod

VALUES: Final[Mapping[str, Sequence[str]]] = {
    "mode": ("required", "preferred", "off"),
    "opt-in-all": ("off", "true", "required", "preferred"),
    "audit": ("off", "on"),
    "shortlist": ("auto", "off"),
    "longhorn-namespace": ("longhorn-system",),  # or any other name
}
"""The options of `serve` that decide, each with its values, the default first."""
_VARIABLES: Final = {f"KUBEVIRT_COSCHEDULE_{name.replace('-', '_').upper()}": name for name in VALUES}
_EXPANDED: Final = "$("  # Kubernetes replaces $(NAME) in arguments and values
UNKNOWN: Final = ""  # the value comes from elsewhere


def stated_options(container: ServeContainer) -> dict[str, str]:
    """Return the value of each option that decides: of the arguments, else of the environment, else the default."""
    given = {name: values[0] for name, values in VALUES.items()}
    if container.env_from:
        given = dict.fromkeys(given, UNKNOWN)
    given |= {_VARIABLES[each.name]: _value(each) for each in container.env or () if each.name in _VARIABLES}
    given |= dict(_arguments(container))
    return {name: value if _is_valid(name, value) else UNKNOWN for name, value in given.items()}


def _value(variable: EnvVar) -> str:
    return UNKNOWN if variable.value_from is not None else variable.value or UNKNOWN


def _arguments(container: ServeContainer) -> Iterator[tuple[str, str]]:
    for word, following in pairwise([*container.words, ""]):
        flag, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and flag in VALUES:
            yield flag, value if equals else following


def _is_valid(name: str, value: str) -> bool:
    return _EXPANDED not in value and (name == "longhorn-namespace" or value in VALUES[name])


def only_options(pod: ServePod) -> list[ServeContainer | None]:
    """Return of each container what states one of these options; None for a container that is not the webhook's."""
    return [
        ServeContainer(
            args=["serve", *(f"--{name}={value}" for name, value in _arguments(each))],
            env=[variable for variable in each.env or () if variable.name in _VARIABLES] or None,
            env_from=each.env_from,
        )
        if each.serves
        else None
        for each in pod.spec.containers or ()
    ]
