"""What the certificate controller says on its health port: /healthz, /readyz and /metrics."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from aiohttp import web
from prometheus_client.metrics_core import Metric

from certs.controller import Clock, ControllerStatus
from webhook.component_base.health import Check, health_application
from webhook.component_base.metrics import counter, expose, gauge, new_registry
from webhook.component_base.pem import rfc3339

# Each round takes seconds: up to four requests of 10 s at most, and a pause of 10 s at most.
STUCK_AFTER: Final = timedelta(minutes=3)


def application(status: ControllerStatus, clock: Clock) -> web.Application:
    """Return what answers at the health port."""
    return health_application(
        lambda: [readiness(status)],
        partial(expose, new_registry(lambda: families(status))),
        lambda: [liveness(status, clock.now())],
    )


def liveness(status: ControllerStatus, now: datetime) -> Check:
    """Return the check of /healthz. It does not depend on the API server: a restart does not repair that."""
    last = status.reconciled_at
    if last and now - last > STUCK_AFTER:
        return Check("controller", ok=False, detail=f"has not run since {rfc3339(last)}")
    return Check("controller", ok=True)


def readiness(status: ControllerStatus) -> Check:
    """Return the check of /readyz: ok if the last attempt could read and write the objects."""
    return Check("objects", ok=not status.problem, detail=status.problem or "")


def families(status: ControllerStatus) -> Iterator[Metric]:
    """Return the families with the current values. A time is absent while it is unknown."""
    yield gauge(
        "certs_certificate_expiry_timestamp_seconds",
        "Time at which the certificate in the Secret expires.",
        (),
        {(): status.expires_at.timestamp()} if status.expires_at else {},
    )
    yield gauge(
        "certs_last_success_timestamp_seconds",
        "Time at which the Secret and the webhook configuration were last found correct.",
        (),
        {(): status.succeeded_at.timestamp()} if status.succeeded_at else {},
    )
    for title, text, value in (
        ("rotations", "Certificates that became the current one.", status.rotations),
        ("writes", "Writes of the Secret and of the webhook configuration.", status.writes),
        ("conflicts", "Writes that failed because another client had changed the object.", status.conflicts),
        ("errors", "Failed attempts to read or write an object.", status.errors),
    ):
        yield counter(f"certs_{title}", text, (), {(): value})
