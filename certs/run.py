"""`keep` as a process: connects the controller to a cluster, to its health port and its log, until a signal.

The controller's loop does not end by itself. If it does, the process exits with 1, and the kubelet starts a new one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from aiohttp import web
from prometheus_client.metrics_core import Metric

from certs.cluster import connect_objects
from certs.controller import Clock, Controller, ControllerStatus
from certs.settings import ControllerSettings
from webhook.component_base.health import Check, counter, expose, gauge, health_application, new_registry
from webhook.component_base.lifecycle import Background, set_on_signal
from webhook.component_base.log_line import written_to_stderr
from webhook.component_base.pem import rfc3339
from webhook.component_base.server.listener import Listener, allow_files

LOGGER: Final = logging.getLogger("certs")
# Each round takes seconds: up to four requests of 10 s at most, and a pause of 10 s at most.
STUCK_AFTER: Final = timedelta(minutes=3)


def run(settings: ControllerSettings) -> int:
    """Run the controller until SIGTERM or SIGINT. Return the exit code: 1 if the controller ended before that.

    Raises:
        UserError: the kubeconfig, the service account or the address can't be used.
    """
    allow_files()
    with written_to_stderr(logging.INFO):
        return asyncio.run(_run(settings))


async def _run(settings: ControllerSettings) -> int:
    open_cluster = partial(connect_objects, settings)
    async with open_cluster():
        pass  # a kubeconfig that can't be used ends the process now
    clock = Clock()
    controller = Controller(open_cluster, settings.policy, clock, note)
    listener = Listener(application(controller.status, clock))
    listen = await listener.start(settings.listen)
    note(
        "keeping",
        secret=f"{settings.namespace}/{settings.secret}",
        authority_secret=f"{settings.namespace}/{settings.authority_secret}",
        webhook_configuration=settings.webhook_configuration,
        names=settings.policy.names,
        listen=f"http://{listen}",
    )
    background = Background()
    set_on_signal(background.failed)
    background.start("controller", controller.run())
    try:
        await background.failed.wait()
    finally:
        await background.stop()
        await listener.stop(0)
    note("stopped")
    return background.exit_code


def note(message: str, level: int = logging.INFO, **fields: object) -> None:
    """Log one line: a constant message, and its fields, which are names and reasons and never a key."""
    LOGGER.log(level, message, extra={"fields": fields})


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
