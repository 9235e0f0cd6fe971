"""Settings from flags and environment: one table of options, and every problem reported at once.

The table is what the parser, the help and the README are made from. A flag wins over its environment variable,
which wins over the default. Settings are frozen: a change of settings is a restart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct

from webhook.core.placement import Mode
from webhook.errors import UserError

ENVIRONMENT_PREFIX: Final = "KUBEVIRT_COSCHEDULE_"
_MAX_PORT: Final = 65535
_PORT: Final = re.compile("[0-9]{1,5}")
_SECONDS: Final = re.compile(r"[0-9]{1,5}(\.[0-9]{1,3})?")


class BadSettings(UserError):
    """Flags or environment that can't be used."""


class Address(NamedTuple):
    """Where to listen; an empty host is every interface."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(text: str) -> Address:
    """`HOST:PORT`, `:PORT` or `[IPV6]:PORT`.

    Raises:
        ValueError: says what was expected.
    """
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or (":" in host and not bracketed) or not _PORT.fullmatch(port) or int(port) > _MAX_PORT:
        raise ValueError(f"expected HOST:PORT, :PORT or [IPV6]:PORT with a port from 0 to {_MAX_PORT}")
    return Address(host[1:-1] if bracketed else host, int(port))


def one_of(*words: str) -> Callable[[str], str]:
    """A parser for one of a few words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"expected {', '.join(words[:-1])} or {words[-1]}")
        return text

    return parse


def _mode(text: str) -> Mode:
    return Mode(one_of(*Mode)(text))


def _name(text: str) -> str:
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


class Option(Struct, frozen=True, kw_only=True):
    """One setting: its flag, how its text is read, and what the help says.

    Without a default it is required, or `optional`: then its value is None where nobody gives one.
    """

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


_MANIFESTS: Final = Option(
    flag="--manifests",
    placeholder="DIR",
    optional=True,
    parse=Path,
    help="Instead of a live cluster: file, or directory of .yaml, .yml and .json files, that describes it: nodes, "
    "claims, volumes, ShareManagers, share-manager pods. Other kinds are ignored.",
)
_KUBECONFIG: Final = Option(
    flag="--kubeconfig",
    placeholder="FILE",
    optional=True,
    parse=Path,
    help="kubeconfig of the cluster to read. Without it: the service account where this runs in a pod, else "
    "$KUBECONFIG, else ~/.kube/config.",
)
_CONTEXT: Final = Option(
    flag="--context",
    placeholder="NAME",
    optional=True,
    parse=_name,
    help="Context of the kubeconfig; without it the current one.",
)
_MODE: Final = Option(
    flag="--mode",
    placeholder="MODE",
    default="required",
    parse=_mode,
    help='What kubevirt-scheduler/co-schedule: "true" stands for: required, preferred or off. A VM that names '
    "required or preferred itself gets that.",
)
_LONGHORN_NAMESPACE: Final = Option(
    flag="--longhorn-namespace",
    placeholder="NAMESPACE",
    default="longhorn-system",
    parse=_name,
    help="Namespace of Longhorn's own objects.",
)

SERVE: Final = (
    Option(
        flag="--tls-cert-file",
        placeholder="FILE",
        parse=Path,
        help="PEM file with the serving certificate, and after it the certificates of its issuers.",
    ),
    Option(
        flag="--tls-private-key-file",
        placeholder="FILE",
        parse=Path,
        help="PEM file with the certificate's private key. Both files are looked at each second, and a new pair is "
        "served from then on. Where neither is there at the start, or a kubelet keeps them, a good pair is waited for.",
    ),
    Option(
        flag="--tls-server-name",
        placeholder="NAME",
        optional=True,
        parse=_name,
        help="DNS name that the certificate must be for, such as kubevirt-coschedule.kubevirt-coschedule.svc; one for "
        "other names only is not served. Without it any name will do.",
    ),
    Option(
        flag="--tls-min-version",
        placeholder="VERSION",
        default="VersionTLS13",
        parse=one_of("VersionTLS12", "VersionTLS13"),
        help="Oldest TLS that callers may speak: VersionTLS12 or VersionTLS13.",
    ),
    Option(
        flag="--client-ca-file",
        placeholder="FILE",
        optional=True,
        parse=Path,
        help="PEM file with the authorities that issue callers' certificates, looked at each second too: whoever "
        "calls without one is refused. Without it anybody who can connect may call.",
    ),
    Option(
        flag="--client-name",
        placeholder="NAME",
        optional=True,
        parse=_name,
        help="Common name, or DNS name, that a caller's certificate must have. Without it any name will do.",
    ),
    Option(
        flag="--listen",
        placeholder="ADDRESS",
        default=":9443",
        parse=address,
        help="Where the API server calls the webhook (TLS).",
    ),
    Option(
        flag="--health-listen",
        placeholder="ADDRESS",
        default=":8080",
        parse=address,
        help="Where /healthz and /readyz answer (plain HTTP).",
    ),
    Option(
        flag="--drain-seconds",
        placeholder="SECONDS",
        default="15",
        parse=seconds,
        help="After SIGTERM, how long connections are still accepted while /readyz says no, so that callers move "
        "elsewhere; with the 10 s for calls in flight it fits into the 30 s that Kubernetes gives a pod.",
    ),
    _MODE,
    _LONGHORN_NAMESPACE,
    _KUBECONFIG,
    _CONTEXT,
    _MANIFESTS,
)

EXPLAIN: Final = (
    Option(
        flag="--filename",
        short="-f",
        placeholder="FILE",
        optional=True,
        parse=_name,
        help="Pod, VirtualMachine, VirtualMachineInstance or AdmissionReview to explain, YAML or JSON, one or several; "
        "- reads standard input.",
    ),
    Option(
        flag="--namespace",
        short="-n",
        placeholder="NAMESPACE",
        optional=True,
        parse=_name,
        help="Namespace of the names, and of objects in FILE that state none. Without it: the context's, else default.",
    ),
    _KUBECONFIG,
    _CONTEXT,
    _MANIFESTS,
    Option(
        flag="--output",
        short="-o",
        placeholder="FORMAT",
        default="text",
        parse=one_of("text", "yaml", "json"),
        help="Output format: text, yaml or json.",
    ),
    _MODE,
    _LONGHORN_NAMESPACE,
)


class ServeSettings(Struct, frozen=True, kw_only=True):
    """What `serve` runs with; with `manifests` nothing of a live cluster is read.

    Raises:
        BadSettings: a name of callers, and nobody who vouches for it.
    """

    tls_cert_file: Path
    tls_private_key_file: Path
    tls_server_name: str | None
    tls_min_version: Literal["VersionTLS12", "VersionTLS13"]
    client_ca_file: Path | None
    client_name: str | None
    listen: Address
    health_listen: Address
    drain_seconds: float
    mode: Mode
    longhorn_namespace: str
    kubeconfig: Path | None
    context: str | None
    manifests: Path | None

    def __post_init__(self) -> None:
        """A name is read from a certificate that somebody must have verified."""
        if self.client_name is not None and self.client_ca_file is None:
            raise BadSettings(
                f"got --client-name {self.client_name} without --client-ca-file: expected the authority behind it"
            )


class ExplainSettings(Struct, frozen=True, kw_only=True):
    """What `explain` runs with: `names` of objects in the live cluster, or else a file of them.

    Raises:
        BadSettings: both or neither of these, or two clusters at once.
    """

    names: tuple[str, ...]
    filename: str | None
    manifests: Path | None
    kubeconfig: Path | None
    context: str | None
    namespace: str | None
    output: Literal["text", "yaml", "json"]
    mode: Mode
    longhorn_namespace: str

    def __post_init__(self) -> None:
        """Say every contradiction at once."""
        problems = []
        if not self.names and not self.filename:
            problems.append("nothing to explain: expected TYPE/NAME, such as vm/db01, or --filename FILE")
        if self.names and self.filename:
            problems.append(
                f"got {' '.join(self.names)} and --filename {self.filename}: expected names or a file, not both"
            )
        if self.names and self.manifests:
            problems.append(
                f"got {' '.join(self.names)} and --manifests: names are of a live cluster; leave "
                "--manifests out, or give the object with --filename FILE"
            )
        for flag, value in (("--kubeconfig", self.kubeconfig), ("--context", self.context)):
            if self.manifests and value is not None:
                problems.append(
                    f"got {flag} {value} and --manifests {self.manifests}: expected a live cluster or one in files, "
                    "not both"
                )
        if problems:
            raise BadSettings(*problems)


def resolve(
    options: Sequence[Option], flags: Mapping[str, str | None], environment: Mapping[str, str]
) -> dict[str, Any]:
    """Field -> value for every option.

    Args:
        flags: field -> text given on the command line, None or absent where none was.
        environment: the process's environment variables.

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
            continue
        if text is None:
            problems.append(f"{option.flag}: got nothing, expected {option.placeholder} (or set {option.variable})")
            continue
        try:
            values[option.field] = option.parse(text)
        except ValueError as error:
            problems.append(f"{origin}: got {text!r}, {error}")
    if problems:
        raise BadSettings(*problems)
    return values
