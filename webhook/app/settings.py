"""What `serve` runs with: its options, and their values. A change of settings is a restart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from webhook.component_base.options import ADDRESS, FILE, NAME, ON_OR_OFF, SECONDS, Address, option
from webhook.settings import OPT_IN_ALL, AnyClusterSettings, policy_of

if TYPE_CHECKING:
    from webhook.core.opt_in import Policy


@dataclass(frozen=True, kw_only=True)
class ServeSettings(AnyClusterSettings):
    """What `serve` runs with; with `manifests` nothing of a live cluster is read.

    Raises:
        UsageError: two clusters at once, or a name of callers and nobody who vouches for it.
    """

    tls_cert_file: Path = option(
        required=True,
        type=FILE,
        help="PEM file with the serving certificate, and after it the certificates of its issuers.",
    )
    tls_private_key_file: Path = option(
        required=True,
        type=FILE,
        help="PEM file with the certificate's private key. The webhook serves a new pair within a second. Where "
        "neither file is there at the start, or a kubelet writes them, it waits for a good pair.",
    )
    tls_server_name: str | None = option(
        type=NAME,
        help="DNS name that the certificate must be for, such as kubevirt-coschedule.kubevirt-coschedule.svc. Without "
        "this option the certificate may be for any name.",
    )
    tls_min_version: str = option(
        default="VersionTLS13",
        type=click.Choice(["VersionTLS12", "VersionTLS13"]),
        help="Oldest TLS version that a caller may use.",
    )
    client_ca_file: Path | None = option(
        type=FILE,
        help="PEM file with the authorities that issue callers' certificates; the webhook takes a changed file. "
        "Without this option anybody who can connect may call.",
    )
    client_name: str | None = option(
        type=NAME,
        help="Common name, or DNS name, that a caller's certificate must have. Without this option it may have any "
        "name.",
    )
    listen: Address = option(
        default=":9443",
        type=ADDRESS,
        help="Address at which the API server calls the webhook (TLS).",
    )
    health_listen: Address = option(
        default=":8080",
        type=ADDRESS,
        help="Address of /healthz, /readyz, /metrics and the page (plain HTTP).",
    )
    page: bool = option(
        default="on",
        type=ON_OR_OFF,
        help="Whether the health address (--health-listen) also has the page. It answers only callers of localhost, as "
        "kubectl port-forward is one.",
    )
    drain_seconds: float = option(
        default="15",
        type=SECONDS,
        help="How long after SIGTERM the webhook still accepts connections, while /readyz says no. Calls that have "
        "begun get 10 s more; together that fits into the 30 s that Kubernetes gives a pod.",
    )
    mode: str = option(
        default="required",
        type=click.Choice(["required", "preferred", "off"]),
        help="Mode of a VM whose annotation, or whose Namespace's label, is true. A VM that asks for required or "
        "preferred gets that mode.",
    )
    opt_in_all: str = option(
        default="off",
        type=OPT_IN_ALL,
        help="Opts in every VM without the annotation kubevirt-scheduler/co-schedule whose Namespace has no such label "
        "either: off, true (with --mode), required or preferred. The API server sends the pods of these VMs only with "
        "manifests/components/opt-in-all, which sets this option.",
    )
    shortlist: str = option(
        default="auto",
        type=click.Choice(["auto", "off"]),
        help="Whether a preference among more than 100 nodes comes with a short list of required nodes. An autoscaler "
        "makes no node for a pod with such a list. auto: no list beside Karpenter and cluster-autoscaler. Beside "
        "another autoscaler choose off.",
    )
    audit: str = option(
        default="off",
        type=click.Choice(["on", "off"]),
        help="Whether the webhook only tells each decision, in the pod's annotation kubevirt-scheduler/decision, the "
        "log, the metrics and the events.",
    )
    events: bool = option(
        default="off",
        type=ON_OR_OFF,
        help="Whether an event on the VirtualMachineInstance tells the decision for its pod. manifests/events.yaml "
        "gives the right to create events.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = option(
        default="info",
        type=click.Choice(["debug", "info", "warning", "error"]),
        help="Lowest level that the webhook logs; info has a line for each admission.",
    )

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        super().__post_init__()
        if self.events and self.manifests:
            raise click.UsageError(
                f"got --events on and --manifests {self.manifests}: expected a live cluster for the events"
            )
        if self.client_name is not None and self.client_ca_file is None:
            # A name is read from a certificate that somebody must have verified.
            raise click.UsageError(
                f"got --client-name {self.client_name} without --client-ca-file: expected the authority that issues "
                "callers' certificates, too"
            )

    @property
    def policy(self) -> Policy:
        """The operator's choices, for all that decides, and all that shows decisions."""
        return policy_of(vars(self))
