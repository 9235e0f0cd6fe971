"""The options of each subcommand: what the parser, the help and the manifests go by."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from certs.settings import Option, address, dns_name, duration, fraction, names, one_of, seconds

_NAME: Final = "kubevirt-coschedule"

KUBECONFIG: Final = Option(
    flag="--kubeconfig",
    placeholder="FILE",
    optional=True,
    parse=Path,
    help="kubeconfig of the cluster. Without it: the service account where this runs in a pod, else $KUBECONFIG, else "
    "~/.kube/config.",
)
CONTEXT: Final = Option(
    flag="--context",
    placeholder="NAME",
    optional=True,
    help="Context of the kubeconfig; without it the current one.",
)
KEPT: Final = (
    Option(
        flag="--namespace",
        placeholder="NAMESPACE",
        default=_NAME,
        parse=dns_name,
        help="Namespace of the Service and of the Secret.",
    ),
    Option(
        flag="--service",
        placeholder="NAME",
        default=_NAME,
        parse=dns_name,
        help="Service that the API server calls: the certificate is for its names.",
    ),
    Option(
        flag="--secret",
        placeholder="NAME",
        default=f"{_NAME}-tls",
        parse=dns_name,
        help="Secret that the servers mount.",
    ),
    Option(
        flag="--webhook-configuration",
        placeholder="NAME",
        default=_NAME,
        parse=dns_name,
        help="MutatingWebhookConfiguration whose caBundle is kept, in each webhook of it.",
    ),
    Option(
        flag="--cluster-domain",
        placeholder="DOMAIN",
        default="cluster.local",
        parse=dns_name,
        help="DNS domain of the cluster.",
    ),
)
KEEP: Final = (
    *KEPT,
    Option(
        flag="--lifetime",
        placeholder="DURATION",
        default="30d",
        parse=duration,
        help="How long a certificate is valid: 30d, 12h, 15m, 90s.",
    ),
    Option(
        flag="--renew-at",
        placeholder="FRACTION",
        default="2/3",
        parse=fraction,
        help="The part of its lifetime after which a certificate is renewed.",
    ),
    Option(
        flag="--propagation-seconds",
        placeholder="SECONDS",
        default="120",
        parse=seconds,
        help="From a write of caBundle until every API server has seen it. They watch it, which takes milliseconds; "
        "one that has lost its watch asks again after at most 60 s. A new certificate is not served before that.",
    ),
    Option(
        flag="--retire-seconds",
        placeholder="SECONDS",
        default="3600",
        parse=seconds,
        help="From a write of the Secret until no server serves what it held before. Kubelets take up to two minutes, "
        "servers a few seconds; so long, and with much to spare, an old authority stays in the bundle.",
    ),
    Option(
        flag="--listen",
        placeholder="ADDRESS",
        default=":8080",
        parse=address,
        help="Where /healthz, /readyz and /metrics answer (plain HTTP).",
    ),
    KUBECONFIG,
    CONTEXT,
)
INSPECT: Final = (
    Option(
        flag="--dir",
        placeholder="DIR",
        optional=True,
        parse=Path,
        help="Instead of a live cluster: a directory with tls.crt, tls.key and ca.crt, as a server mounts it.",
    ),
    Option(
        flag="--name",
        placeholder="NAME",
        optional=True,
        parse=names,
        help="DNS names and addresses that the certificate must be for, with commas between them. Without it: the "
        "Service's, or for a directory whatever it is for.",
    ),
    Option(
        flag="--connect",
        placeholder="ADDRESS",
        optional=True,
        parse=address,
        help="Where to make a TLS handshake with the server. Without it, live: the Service's address, where it can be "
        "reached from here.",
    ),
    Option(
        flag="--output",
        short="-o",
        placeholder="FORMAT",
        default="text",
        parse=one_of("text", "json"),
        help="Output format: text or json.",
    ),
    *KEPT,
    KUBECONFIG,
    CONTEXT,
)
ISSUE: Final = (
    Option(
        flag="--dir",
        placeholder="DIR",
        parse=Path,
        help="Where tls.crt, tls.key and ca.crt are written; it is made where it is not there.",
    ),
    Option(
        flag="--name",
        placeholder="NAME",
        default="localhost,127.0.0.1",
        parse=names,
        help="DNS names and addresses that the certificate is for, with commas between them.",
    ),
    Option(
        flag="--lifetime",
        placeholder="DURATION",
        default="30d",
        parse=duration,
        help="How long it is valid: 30d, 12h, 15m, 90s.",
    ),
)
