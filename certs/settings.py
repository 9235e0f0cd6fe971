"""What each command runs with: its options, their values, and the types by which they are read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from webhook.component_base.options import ADDRESS, FILE, Address, ClusterSettings, Parsed, matching, option, seconds

if TYPE_CHECKING:
    from certs.plan import RotationPolicy

_NAME: Final = "kubevirt-coschedule"
ENVIRONMENT_PREFIX: Final = "KUBEVIRT_COSCHEDULE_CERTS"
_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}

DNS_NAME: Final = Parsed(
    "NAME",
    matching(
        r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
        "a DNS name of lower case letters, digits, - and .",
    ),
)
DURATION: Final = Parsed(
    "DURATION",
    matching(
        r"0*([1-9][0-9]{0,5})([dhms])",
        "a duration such as 30d, 12h, 15m or 90s",
        lambda read: timedelta(**{_UNITS[read[2]]: int(read[1])}),
    ),
)
FRACTION: Final = Parsed(
    "FRACTION",
    matching(
        r"0?\.[0-9]{1,4}|[0-9]{1,2}/[1-9][0-9]?",
        "a fraction between 0 and 1, such as 0.5 or 2/3",
        lambda read: float(Fraction(read[0])),
    ),
)
SECONDS_SPAN: Final = Parsed("SECONDS", lambda text: timedelta(seconds=seconds(text)))


@dataclass(frozen=True, kw_only=True)
class ControllerSettings(ClusterSettings):
    """What `keep` runs with.

    Raises:
        UsageError: times that can't work together.
    """

    namespace: str = option(
        default=_NAME, metavar="NAMESPACE", type=DNS_NAME, help="Namespace of the Service and of the Secrets."
    )
    service: str = option(
        default=_NAME,
        type=DNS_NAME,
        help="Service that the API server calls. The certificate is for the names of this Service.",
    )
    secret: str = option(default=f"{_NAME}-tls", type=DNS_NAME, help="Secret that the servers mount.")
    authority_secret: str = option(
        default=f"{_NAME}-certs-ca",
        type=DNS_NAME,
        help="Secret of the authority that issues the certificates. No server mounts it. Without it the certificate "
        "controller makes a new authority.",
    )
    webhook_configuration: str = option(
        default=_NAME,
        type=DNS_NAME,
        help="MutatingWebhookConfiguration. The certificate controller writes the caBundle of each of its webhooks.",
    )
    cluster_domain: str = option(
        default="cluster.local", metavar="DOMAIN", type=DNS_NAME, help="DNS domain of the cluster."
    )
    lifetime: timedelta = option(
        default="30d", type=DURATION, help="How long a certificate is valid: 30d, 12h, 15m or 90s."
    )
    renew_at: float = option(
        default="2/3",
        type=FRACTION,
        help="Fraction of its lifetime after which the certificate controller renews a certificate.",
    )
    propagation_seconds: timedelta = option(
        default="120",
        type=SECONDS_SPAN,
        help="How long after a write of caBundle until every API server has seen it, also one that lost its watch. "
        "Servers get a certificate of a new authority only after this time.",
    )
    retire_seconds: timedelta = option(
        default="3600",
        type=SECONDS_SPAN,
        help="How long after a write of the Secret until no server uses its old content. An old authority stays in "
        "caBundle for this time.",
    )
    listen: Address = option(
        default=":8080", type=ADDRESS, help="Address of /healthz, /readyz and /metrics (plain HTTP)."
    )

    def __post_init__(self) -> None:
        """Refuse times that can't work together."""
        if not 0 < self.renew_at < 1:
            when = "at once, again and again" if self.renew_at <= 0 else "after expiry"
            raise click.UsageError(
                f"--renew-at: got {self.renew_at:g}, which renews {when}; expected a fraction of the lifetime between "
                "0 and 1, such as 2/3"
            )
        needed = self.propagation_seconds + self.retire_seconds
        if self.renew_before <= needed:
            raise click.UsageError(
                f"--lifetime: got {self.lifetime}, of which {self.renew_before} are left when it is renewed; expected "
                f"more than the {needed} that another authority takes (--propagation-seconds and --retire-seconds): "
                "choose a longer lifetime, or renew earlier with --renew-at"
            )
        from certs.plan import AUTHORITY_LIFETIME  # noqa: PLC0415 - help and completion do without

        if self.lifetime > AUTHORITY_LIFETIME / 2:
            raise click.UsageError(
                f"--lifetime: got {self.lifetime}, expected at most {AUTHORITY_LIFETIME / 2}, half of the authority's"
            )

    @property
    def renew_before(self) -> timedelta:
        """How much of its life a certificate has left when it is renewed."""
        return self.lifetime * (1 - self.renew_at)

    @property
    def policy(self) -> RotationPolicy:
        """Return the settings that the plan of a rotation needs."""
        from certs import pki  # noqa: PLC0415 - as above
        from certs.plan import RotationPolicy  # noqa: PLC0415 - as above

        return RotationPolicy(
            names=pki.service_names(self.service, self.namespace, self.cluster_domain),
            lifetime=self.lifetime,
            renew_before=self.renew_before,
            propagation=self.propagation_seconds,
            retire=self.retire_seconds,
        )


@dataclass(frozen=True, kw_only=True)
class IssueSettings:
    """What `issue` runs with."""

    dir: Path = option(
        required=True,
        metavar="DIR",
        type=FILE,
        help="Directory into which the program writes tls.crt, tls.key and ca.crt. The program makes a directory that "
        "does not exist.",
    )
    name: tuple[str, ...] = option(
        default=("localhost", "127.0.0.1"),
        multiple=True,
        help="DNS name or address that the certificate is for; may be repeated.",
    )
    lifetime: timedelta = option(default="30d", type=DURATION, help="How long it is valid: 30d, 12h, 15m or 90s.")
