"""/healthz, /readyz and /metrics on one port, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from aiohttp import web

from certs.controller import reconciler
from certs.controller.reconciler import Clock, Status
from webhook.component_base.address import Address
from webhook.component_base.errors import UserError

# The loop goes round once in LOOK_EVERY, and in that time may wait for an answer, and pause: three times that is stuck.
_STUCK_AFTER: Final = 3 * reconciler.LOOK_EVERY
_PREFIX: Final = "kubevirt_coschedule_certs_"


class BadAddress(UserError):
    """An address that can't be listened on."""


async def listen(address: Address, status: Status, clock: Clock) -> web.AppRunner:
    """Answer there until the runner is cleaned up.

    Raises:
        BadAddress: it is in use, not ours, or not allowed.
    """

    def answers(make: Callable[[], tuple[int, str]]) -> Callable[[web.Request], object]:
        async def handle(_: web.Request) -> web.Response:
            code, text = make()
            return web.Response(status=code, text=text + "\n")

        return handle

    app = web.Application()
    app.router.add_get("/healthz", answers(lambda: alive(status, clock())))  # type: ignore[arg-type]
    app.router.add_get("/readyz", answers(lambda: ready(status)))  # type: ignore[arg-type]
    app.router.add_get("/metrics", answers(lambda: (200, metrics(status))))  # type: ignore[arg-type]
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    try:
        await web.TCPSite(runner, address.host or None, address.port).start()
    except OSError as error:
        await runner.cleanup()
        raise BadAddress(f"can't listen on {address}: {error.strerror}; choose another with --listen") from None
    return runner


def alive(status: Status, now: datetime) -> tuple[int, str]:
    """Whether the loop goes round; a cluster that does not answer is no reason to start anew."""
    if status.turned_at and now - status.turned_at > _STUCK_AFTER:
        return 503, f"the loop has not gone round since {status.turned_at:%Y-%m-%dT%H:%M:%SZ}"
    return 200, "ok"


def ready(status: Status) -> tuple[int, str]:
    """Whether both objects could be read, and written, at the last try."""
    return (503, status.problem) if status.problem else (200, "ok")


def metrics(status: Status) -> str:
    """Prometheus' text format. Times are seconds since 1970, absent while they are not known."""
    samples = (
        (
            "certificate_expiry_timestamp_seconds",
            "gauge",
            "When the certificate in the Secret expires.",
            status.expires_at,
        ),
        (
            "last_success_timestamp_seconds",
            "gauge",
            "When all was last found, or made, as it should be.",
            status.succeeded_at,
        ),
        ("rotations_total", "counter", "Certificates put in place.", status.rotations),
        ("writes_total", "counter", "Writes of the Secret and of the webhook configuration.", status.writes),
        ("conflicts_total", "counter", "Writes that somebody else was faster with.", status.conflicts),
        ("errors_total", "counter", "Times that something could not be read or written.", status.troubles),
    )
    lines = []
    for name, kind, text, value in samples:
        lines += [f"# HELP {_PREFIX}{name} {text}", f"# TYPE {_PREFIX}{name} {kind}"]
        if value is not None:
            number = value.timestamp() if isinstance(value, datetime) else value
            lines.append(f"{_PREFIX}{name} {number:.17g}")
    return "\n".join(lines)
