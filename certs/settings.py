"""What `keep` runs with: what is kept, for which Service, and how often it is renewed."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct

from certs.rotation import plan
from certs.rotation.plan import RotationPolicy
from certs.x509 import pki
from webhook.component_base.errors import BadSettings


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

    authority_secret: str
    lifetime: timedelta
    renew_at: float
    propagation_seconds: timedelta
    retire_seconds: timedelta

    def __post_init__(self) -> None:
        """Report times that can't work together."""
        if not 0 < self.renew_at < 1:
            when = "at once, again and again" if self.renew_at <= 0 else "after expiry"
            raise BadSettings(
                f"--renew-at: got {self.renew_at:g}, which renews {when}; expected a fraction of the lifetime between "
                "0 and 1, such as 2/3"
            )
        needed = self.propagation_seconds + self.retire_seconds
        left = self.renew_before
        if left <= needed:
            raise BadSettings(
                f"--lifetime: got {_shown(self.lifetime)}, of which {_shown(left)} are left when it is renewed; "
                f"expected more than the {_shown(needed)} that another authority takes (--propagation-seconds and "
                "--retire-seconds): choose a longer lifetime, or renew earlier with --renew-at"
            )
        if self.lifetime > plan.AUTHORITY_LIFETIME / 2:
            raise BadSettings(
                f"--lifetime: got {_shown(self.lifetime)}, expected at most {_shown(plan.AUTHORITY_LIFETIME / 2)}, "
                "half of the authority's"
            )

    @property
    def renew_before(self) -> timedelta:
        """How much of its life a certificate has left when it is renewed."""
        return self.lifetime * (1 - self.renew_at)

    @property
    def policy(self) -> RotationPolicy:
        """Return the settings that the plan of a rotation needs."""
        return RotationPolicy(
            names=self.names,
            lifetime=self.lifetime,
            renew_before=self.renew_before,
            propagation=self.propagation_seconds,
            retire=self.retire_seconds,
        )


def _shown(span: timedelta) -> str:
    whole = span.total_seconds()
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if whole and whole % length == 0:
            return f"{whole / length:g}{unit}"
    return f"{whole:g}s"
