"""The health port of the certificate controller: /healthz, /readyz and /metrics."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from aiohttp import web

from certs.controller.reconciler import Clock, ControllerStatus
from webhook.component_base.address import Address
from webhook.component_base.errors import UserError

# Each round takes seconds: up to four requests of 10 s at most, and a pause of 10 s at most.
STUCK_AFTER: Final = timedelta(minutes=3)
_PREFIX: Final = "kubevirt_coschedule_certs_"


class BadHealthAddress(UserError):
    """The health port can't listen on its address."""


async def start_health_server(address: Address, status: ControllerStatus, clock: Clock) -> web.AppRunner:
    """Answer requests on `address` until the returned runner is cleaned up.

    Raises:
        BadHealthAddress: the address is in use, does not belong to this machine, or is not permitted.
    """

    def answers(make: Callable[[], tuple[int, str]]) -> Callable[[web.Request], object]:
        async def handle(_: web.Request) -> web.Response:
            code, text = make()
            return web.Response(status=code, text=text + "\n")

        return handle

    app = web.Application()
    app.router.add_get("/healthz", answers(lambda: liveness(status, clock())))  # type: ignore[arg-type]
    app.router.add_get("/readyz", answers(lambda: readiness(status)))  # type: ignore[arg-type]
    app.router.add_get("/metrics", answers(lambda: (200, metrics(status))))  # type: ignore[arg-type]
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    try:
        await web.TCPSite(runner, address.host or None, address.port).start()
    except OSError as error:
        await runner.cleanup()
        raise BadHealthAddress(f"can't listen on {address}: {error.strerror}; choose another with --listen") from None
    return runner


def liveness(status: ControllerStatus, now: datetime) -> tuple[int, str]:
    """Return status and text of /healthz. It does not depend on the API server: a restart does not repair that."""
    if status.reconciled_at and now - status.reconciled_at > STUCK_AFTER:
        return 503, f"the controller has not run since {status.reconciled_at:%Y-%m-%dT%H:%M:%SZ}"
    return 200, "ok"


def readiness(status: ControllerStatus) -> tuple[int, str]:
    """Return status and text of /readyz: 200 if the last attempt could read and write the objects."""
    return (503, status.problem) if status.problem else (200, "ok")


def metrics(status: ControllerStatus) -> str:
    """Return /metrics in Prometheus' text format. Times are seconds since 1970, and absent while they are unknown."""
    samples = (
        (
            "certificate_expiry_timestamp_seconds",
            "gauge",
            "Time at which the certificate in the Secret expires.",
            status.expires_at,
        ),
        (
            "last_success_timestamp_seconds",
            "gauge",
            "Time at which the Secret and the webhook configuration were last found correct.",
            status.succeeded_at,
        ),
        ("rotations_total", "counter", "Certificates that became the current one.", status.rotations),
        ("writes_total", "counter", "Writes of the Secret and of the webhook configuration.", status.writes),
        (
            "conflicts_total",
            "counter",
            "Writes that failed because another client had changed the object.",
            status.conflicts,
        ),
        ("errors_total", "counter", "Failed attempts to read or write an object.", status.errors),
    )
    lines = []
    for name, kind, text, value in samples:
        lines += [f"# HELP {_PREFIX}{name} {text}", f"# TYPE {_PREFIX}{name} {kind}"]
        if value is not None:
            number = value.timestamp() if isinstance(value, datetime) else value
            lines.append(f"{_PREFIX}{name} {number:.17g}")
    return "\n".join(lines)
