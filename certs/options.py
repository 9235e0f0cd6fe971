"""The options of each command: the parser, the help and the manifests are made from them."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import Final

from webhook.component_base.options import ADDRESS, FILE, ClusterSettings, OneOf, Option, Parsed, parameters, seconds

ENVIRONMENT_PREFIX: Final = "KUBEVIRT_COSCHEDULE_CERTS_"
_NAME: Final = "kubevirt-coschedule"
_DURATION: Final = re.compile(r"([0-9]{1,6})([dhms])")
_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_DNS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_FRACTION: Final = re.compile(r"0?\.[0-9]{1,4}|0|1(\.0+)?|[0-9]{1,2}/[0-9]{1,2}")
_option: Final = partial(Option, ENVIRONMENT_PREFIX)


def duration(text: str) -> timedelta:
    """`30d`, `12h`, `15m` or `90s`.

    Raises:
        ValueError: says what was expected.
    """
    read = _DURATION.fullmatch(text)
    if not read or not int(read[1]):
        raise ValueError("expected a duration such as 30d, 12h, 15m or 90s")
    return timedelta(**{_UNITS[read[2]]: int(read[1])})


def fraction(text: str) -> float:
    """`0.5` or `2/3`.

    Raises:
        ValueError: says what was expected.
    """
    above, _, below = text.partition("/")
    if not _FRACTION.fullmatch(text) or (below and not int(below)):
        raise ValueError("expected a fraction between 0 and 1, such as 0.5 or 2/3")
    return float(above) / float(below or 1)


def dns_name(text: str) -> str:
    """A name as Kubernetes takes it.

    Raises:
        ValueError: says what was expected.
    """
    if not _DNS_NAME.fullmatch(text):
        raise ValueError("expected a DNS name of lower case letters, digits, - and .")
    return text


def dns_names(text: str) -> tuple[str, ...]:
    """DNS names and addresses, with commas between them.

    Raises:
        ValueError: says what was expected.
    """
    found = tuple(text.split(","))
    if not all(":" in name or _DNS_NAME.fullmatch(name) for name in found):
        raise ValueError("expected DNS names and addresses with commas between them, such as localhost,127.0.0.1")
    return found


_DNS: Final = Parsed("NAME", dns_name)
_NAMES: Final = Parsed("NAMES", dns_names)
_LIFETIME: Final = Parsed("DURATION", duration)
_SECONDS: Final = Parsed("SECONDS", lambda text: timedelta(seconds=seconds(text)))

KUBECONFIG: Final = parameters(ClusterSettings, ENVIRONMENT_PREFIX)
OBJECT_NAMES: Final = (
    _option(
        "--namespace", default=_NAME, metavar="NAMESPACE", type=_DNS, help="Namespace of the Service and of the Secret."
    ),
    _option(
        "--service",
        default=_NAME,
        type=_DNS,
        help="Service that the API server calls. The certificate is for the names of this Service.",
    ),
    _option("--secret", default=f"{_NAME}-tls", type=_DNS, help="Secret that the servers mount."),
    _option(
        "--webhook-configuration",
        default=_NAME,
        type=_DNS,
        help="MutatingWebhookConfiguration. The certificate controller writes the caBundle of each of its webhooks.",
    ),
    _option(
        "--cluster-domain", default="cluster.local", metavar="DOMAIN", type=_DNS, help="DNS domain of the cluster."
    ),
)
KEEP: Final = (
    *OBJECT_NAMES,
    _option(
        "--authority-secret",
        default=f"{_NAME}-certs-ca",
        type=_DNS,
        help="Secret of the authority that issues the certificates. No server mounts it. Without it the certificate "
        "controller makes a new authority.",
    ),
    _option("--lifetime", default="30d", type=_LIFETIME, help="How long a certificate is valid: 30d, 12h, 15m or 90s."),
    _option(
        "--renew-at",
        default="2/3",
        type=Parsed("FRACTION", fraction),
        help="Fraction of its lifetime after which the certificate controller renews a certificate.",
    ),
    _option(
        "--propagation-seconds",
        default="120",
        type=_SECONDS,
        help="How long after a write of caBundle until every API server has seen it. API servers watch it, which takes "
        "milliseconds; an API server that lost its watch asks again after at most 60 s. Servers get a certificate of a "
        "new authority only after this time.",
    ),
    _option(
        "--retire-seconds",
        default="3600",
        type=_SECONDS,
        help="How long after a write of the Secret until no server uses its old content. Kubelets take up to two "
        "minutes, servers a few seconds. An old authority stays in caBundle for this time, which is far longer.",
    ),
    _option("--listen", default=":8080", type=ADDRESS, help="Address of /healthz, /readyz and /metrics (plain HTTP)."),
    *KUBECONFIG,
)
INSPECT: Final = (
    _option(
        "--dir",
        metavar="DIR",
        type=FILE,
        help="Directory with tls.crt, tls.key and ca.crt, as a server mounts it. The program inspects it instead of a "
        "live cluster.",
    ),
    _option(
        "--name",
        type=_NAMES,
        help="DNS names and addresses that the certificate must be for, with commas between them. Without this option: "
        "the names of the Service; with --dir, the certificate may be for any name.",
    ),
    _option(
        "--connect",
        type=ADDRESS,
        help="Address of a server with which the program makes a TLS handshake. Without this option: the address of "
        "the Service of a live cluster, where it can be reached from here.",
    ),
    _option("--output", "-o", default="text", type=OneOf("text", "json"), help="Output format."),
    *OBJECT_NAMES,
    *KUBECONFIG,
)
ISSUE: Final = (
    _option(
        "--dir",
        required=True,
        metavar="DIR",
        type=FILE,
        help="Directory into which the program writes tls.crt, tls.key and ca.crt. The program makes a directory that "
        "does not exist.",
    ),
    _option(
        "--name",
        default="localhost,127.0.0.1",
        type=_NAMES,
        help="DNS names and addresses that the certificate is for, with commas between them.",
    ),
    _option("--lifetime", default="30d", type=_LIFETIME, help="How long it is valid: 30d, 12h, 15m or 90s."),
)
