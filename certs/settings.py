"""Settings from flags and environment: one table of options, and every problem reported at once.

A flag wins over its environment variable, which wins over the default. The same manner as the webhook's own settings;
the two share no code, because neither program may come to depend on the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

from msgspec import Struct

from certs.errors import UserError
from certs.rotation import bundle
from certs.rotation.plan import RotationPolicy
from certs.x509 import pki

ENVIRONMENT_PREFIX: Final = "KUBEVIRT_COSCHEDULE_CERTS_"
_MAX_PORT: Final = 65535
_PORT: Final = re.compile("[0-9]{1,5}")
_SECONDS: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,3})?")
_DURATION: Final = re.compile(r"([0-9]{1,6})([dhms])")
_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_DNS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_FRACTION: Final = re.compile(r"0?\.[0-9]{1,4}|0|1(\.0+)?|[0-9]{1,2}/[0-9]{1,2}")


class BadSettings(UserError):
    """Flags or environment that can't be used."""


class Address(NamedTuple):
    """Where to listen or connect; an empty host is every interface."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(text: str) -> Address:
    """`HOST:PORT`, `:PORT` or `[IPV6]:PORT`."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or (":" in host and not bracketed) or not _PORT.fullmatch(port) or int(port) > _MAX_PORT:
        raise ValueError(f"expected HOST:PORT, :PORT or [IPV6]:PORT with a port from 0 to {_MAX_PORT}")
    return Address(host[1:-1] if bracketed else host, int(port))


def duration(text: str) -> timedelta:
    """`30d`, `12h`, `15m` or `90s`."""
    read = _DURATION.fullmatch(text)
    if not read or not int(read[1]):
        raise ValueError("expected a duration such as 30d, 12h, 15m or 90s")
    return timedelta(**{_UNITS[read[2]]: int(read[1])})


def seconds(text: str) -> timedelta:
    """A plain number of seconds."""
    if not _SECONDS.fullmatch(text):
        raise ValueError("expected a number of seconds, 0 or more, such as 120 or 0.5")
    return timedelta(seconds=float(text))


def fraction(text: str) -> float:
    """`0.5` or `2/3`."""
    if not _FRACTION.fullmatch(text):
        raise ValueError("expected a fraction between 0 and 1, such as 0.5 or 2/3")
    above, _, below = text.partition("/")
    if below and not int(below):
        raise ValueError("expected a fraction between 0 and 1, such as 0.5 or 2/3")
    return float(above) / float(below or 1)


def dns_name(text: str) -> str:
    """A name as Kubernetes takes it."""
    if not _DNS_NAME.fullmatch(text):
        raise ValueError("expected a DNS name of lower case letters, digits, - and .")
    return text


def names(text: str) -> tuple[str, ...]:
    """DNS names and addresses, with commas between them."""
    found = tuple(text.split(","))
    if not all(":" in name or _DNS_NAME.fullmatch(name) for name in found):
        raise ValueError("expected DNS names and addresses with commas between them, such as localhost,127.0.0.1")
    return found


def one_of(*words: str) -> Callable[[str], str]:
    """A parser for one of a few words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"expected {', '.join(words[:-1])} or {words[-1]}")
        return text

    return parse


class Option(Struct, frozen=True, kw_only=True):
    """One setting: its flag, how its text is read, and what the help says. One that is `optional` may be None."""

    flag: str
    placeholder: str
    help: str
    parse: Callable[[str], Any] = str
    default: str | None = None
    optional: bool = False
    short: str | None = None

    @property
    def field(self) -> str:
        """The attribute that holds the value."""
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable that gives the value where the flag does not."""
        return ENVIRONMENT_PREFIX + self.field.upper()


class ObjectNames(Struct, frozen=True, kw_only=True):
    """What is kept, and for which Service."""

    namespace: str
    service: str
    secret: str
    webhook_configuration: str
    cluster_domain: str

    @property
    def names(self) -> tuple[str, ...]:
        """What a certificate must be for."""
        return pki.service_names(self.service, self.namespace, self.cluster_domain)


class ControllerSettings(ObjectNames, frozen=True, kw_only=True):
    """What is kept, and how.

    Raises:
        BadSettings: times that can't work together.
    """

    lifetime: timedelta
    renew_at: float
    propagation_seconds: timedelta
    retire_seconds: timedelta

    def __post_init__(self) -> None:
        """Say why the times can't work."""
        if not 0 < self.renew_at < 1:
            when = "at once, for ever" if self.renew_at <= 0 else "after expiry"
            raise BadSettings(
                f"--renew-at: got {self.renew_at:g}, which renews {when}; expected a fraction of the lifetime between "
                "0 and 1, such as 2/3"
            )
        needed = self.propagation_seconds + self.retire_seconds
        left = self.renew_before
        if left <= needed:
            raise BadSettings(
                f"--lifetime: got {_shown(self.lifetime)}, of which {_shown(left)} are left when it is renewed; "
                f"expected more than the {_shown(needed)} that a renewal takes (--propagation-seconds and "
                "--retire-seconds): choose a longer lifetime, or renew earlier with --renew-at"
            )
        renewed_after, least = self.lifetime - left, self._least_renewed_after
        if renewed_after < least:
            raise BadSettings(
                f"--renew-at: got {self.renew_at:g}, which renews after {_shown(renewed_after)}; expected "
                f"{_shown(least)} or more (the longer of --propagation-seconds and a sixteenth of --retire-seconds): "
                "renew later, or choose a longer --lifetime"
            )

    @property
    def _least_renewed_after(self) -> timedelta:
        """So that one rotation ends before the next begins, and the bundle does not outgrow its bound."""
        return max(self.propagation_seconds, self.retire_seconds / (bundle.OTHERS_AT_MOST / 2))

    @property
    def renew_before(self) -> timedelta:
        """How much of its life a certificate has left when it is renewed."""
        return self.lifetime * (1 - self.renew_at)

    @property
    def policy(self) -> RotationPolicy:
        """The same, for the plan."""
        return RotationPolicy(
            names=self.names,
            lifetime=self.lifetime,
            renew_before=self.renew_before,
            propagation=self.propagation_seconds,
            retire=self.retire_seconds,
        )


def resolve(options: Sequence[Option], flags: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Field -> value for every option.

    Raises:
        BadSettings: required ones that are missing and values that can't be read, all of them.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for option in options:
        text, origin = flags.get(option.field), option.flag
        if text is None and option.variable in environment:
            text, origin = environment[option.variable], option.variable
        if text is None:
            text = option.default
        if text is None and option.optional:
            values[option.field] = None
        elif text is None:
            problems.append(f"{option.flag}: got nothing, expected {option.placeholder} (or set {option.variable})")
        else:
            try:
                values[option.field] = option.parse(text)
            except ValueError as error:
                problems.append(f"{origin}: got {text!r}, {error}")
    if problems:
        raise BadSettings(*problems)
    return values


def _shown(span: timedelta) -> str:
    whole = span.total_seconds()
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if whole and whole % length == 0:
            return f"{whole / length:g}{unit}"
    return f"{whole:g}s"
