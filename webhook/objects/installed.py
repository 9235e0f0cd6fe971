"""What is installed: the webhook's configuration, its pods with the options that decide, and Longhorn's settings.

Each type has the fields that the commands read. A container states an option by its arguments or its environment.
Invariant: a value that comes from elsewhere is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec.structs import replace

from webhook.core.api.container import Container
from webhook.core.api.meta import ApiType, ObjectMeta, Present
from webhook.core.api.pod import Pod, PodSpec
from webhook.invocation import LONGHORN_NAMESPACE
from webhook.settings import ENVIRONMENT_PREFIX

CONFIGURATION: Final = "kubevirt-coschedule"
"""The name of the MutatingWebhookConfiguration (manifests/install.yaml)."""
LONGHORN_VERSION: Final = "current-longhorn-version"  # the name of a Setting that Longhorn writes itself
VALUES: Final[Mapping[str, Sequence[str]]] = {
    "mode": ("required", "preferred", "off"),
    "opt-in-all": ("off", "true", "required", "preferred"),
    "audit": ("off", "on"),
    "shortlist": ("auto", "off"),
    "longhorn-namespace": (LONGHORN_NAMESPACE,),  # or any other name
}
"""The options of `serve` that decide, each with its values, the default first."""
UNKNOWN: Final = ""  # the value comes from elsewhere
_VARIABLES: Final = {f"{ENVIRONMENT_PREFIX}_{name.replace('-', '_').upper()}": name for name in VALUES}
_EXPANDED: Final = "$("  # Kubernetes replaces $(NAME) in arguments and values


class Setting(ApiType):
    """Setting of Longhorn."""

    metadata: ObjectMeta
    value: str | None = None


class WebhookConfiguration(ApiType):
    """MutatingWebhookConfiguration."""

    metadata: ObjectMeta
    webhooks: list[dict[str, Any]] | None = None


class EnvVar(ApiType):
    """v1.EnvVar. A value from another object (`value_from`) is not known here."""

    name: str | None = None
    value: str | None = None
    value_from: Present | None = None


class ServeContainer(Container):
    """v1.Container, also with its command and environment."""

    command: list[str] | None = None
    env: list[EnvVar] | None = None
    env_from: list[Present] | None = None

    @property
    def serves(self) -> bool:
        """Whether the container runs `serve`."""
        return "serve" in self._words

    @property
    def _words(self) -> list[str]:
        """The words of the command line; the image may name the program before them."""
        return [*(self.command or ()), *(self.args or ())]

    @property
    def options(self) -> dict[str, str]:
        """The value of each option that decides: of the arguments, else of the environment, else the default."""
        given = {name: UNKNOWN if self.env_from else values[0] for name, values in VALUES.items()}
        for each in self._variables():
            given[_VARIABLES[each.name or ""]] = UNKNOWN if each.value_from else each.value or UNKNOWN
        given |= dict(self._arguments())
        return {name: value if _is_valid(name, value) else UNKNOWN for name, value in given.items()}

    def _variables(self) -> list[EnvVar]:
        return [each for each in self.env or () if each.name in _VARIABLES]

    def _arguments(self) -> Iterator[tuple[str, str]]:
        for word, following in pairwise([*self._words, ""]):
            flag, equals, value = word.removeprefix("--").partition("=")
            if word.startswith("--") and flag in VALUES:
                yield flag, value if equals else following

    def only_options(self) -> ServeContainer:
        """Return the container with nothing of its words and environment but what states one of these options."""
        if not self.serves:
            return replace(self, command=None, args=None, env=None, env_from=None)
        args = ["serve", *(f"--{name}={value}" for name, value in self._arguments())]
        return replace(self, command=None, args=args, env=self._variables() or None)


def _is_valid(name: str, value: str) -> bool:
    return _EXPANDED not in value and (name == "longhorn-namespace" or value in VALUES[name])


class ServePodSpec(PodSpec):
    """v1.PodSpec of a webhook pod."""

    containers: list[ServeContainer] | None = None  # type: ignore[assignment]  # of a wider type; nobody adds to it


class ServePod(Pod):
    """A pod of the webhook. No other pod is read with its environment."""

    spec: ServePodSpec

    @property
    def stated(self) -> list[dict[str, str]]:
        """The options of each of its containers that runs `serve`; none if the pod does not run, or ends."""
        if self.metadata.deletion_timestamp or not self.status or self.status.phase != "Running":
            return []
        return [each.options for each in self.spec.containers or () if each.serves]
