"""The certificate controller killed before and after each write of a new authority, on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from support.control_plane.certs_install import CONFIGURATION, NAMES, SECRET, CertsInstall
from support.control_plane.rendering import NAME, TLS
from support.drivers.command_lines import values

from certs import cli, cluster, pki, state
from certs.cluster import ClusterObjects
from certs.controller import Clock, Controller
from certs.plan import RotationPolicy, Write
from certs.settings import ControllerSettings
from certs.state import ClusterState

QUICK: Final = RotationPolicy(
    names=NAMES,
    lifetime=timedelta(days=1),
    renew_before=timedelta(hours=8),
    propagation=timedelta(milliseconds=200),
    retire=timedelta(milliseconds=400),
)
WRITES: Final = 4


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("write", range(WRITES))
def test_a_controller_killed_at_any_write_of_a_new_authority_is_continued(
    kept: CertsInstall, write: int, moment: str
) -> None:
    """By the next one, on a real API server: at no moment is the pair in the Secret not published."""
    asyncio.run(_crash(kept, write, moment))
    assert kept.is_good()


class Killed(Exception):
    """The process ended."""


class Dying:
    """The real cluster, where one write is the last; and whether a pair was ever served that is not published."""

    def __init__(self, real: ClusterObjects, kept: CertsInstall, left: int | None, moment: str) -> None:
        self._real, self._kept, self._left, self._moment = real, kept, left, moment

    async def read(self) -> ClusterState:
        """As the real one."""
        return await self._real.read()

    async def write(self, step: Write, *planned: Any) -> None:
        """The last one is made or not, and then the process ends."""
        if self._left == 0 and self._moment == "before":
            raise Killed
        await self._real.write(step, *planned)
        seen = self._kept.state()
        assert all(seen.served.pair.authority in bundle for bundle in seen.configuration.bundles), step
        if self._left == 0:
            raise Killed
        self._left = self._left - 1 if self._left else None


async def _sleep(seconds: float) -> None:
    """Once nothing is to be done for long, this life is over."""
    if seconds > QUICK.retire.total_seconds():
        raise Killed
    await asyncio.sleep(seconds)


async def _crash(kept: CertsInstall, write: int, moment: str) -> None:
    """It takes over a pair whose authority has no key here."""
    now, lifetime = datetime.now(UTC), timedelta(days=1)
    settings = ControllerSettings(**values(cli.COMMANDS, "keep", f"--kubeconfig={kept.kubeconfig}"))
    first = pki.issue(pki.new_authority(now=now, lifetime=lifetime), NAMES, now=now, lifetime=lifetime)
    data = state.new_secret(f"/api/v1/namespaces/{NAME}/secrets/{TLS}", first)["data"]
    kept.api.create({**SECRET, "data": data})
    hooks = kept.api.get(CONFIGURATION)["webhooks"]
    for hook in hooks:
        hook["clientConfig"]["caBundle"] = data["ca.crt"]
    kept.api.patch(CONFIGURATION, {"webhooks": hooks})
    for left, at in ((write, moment), (None, "")):

        @asynccontextmanager
        async def connect(left: int | None = left, at: str = at) -> AsyncIterator[Dying]:
            async with cluster.connect_objects(settings) as real:
                yield Dying(real, kept, left, at)

        keeper = Controller(connect, QUICK, Clock(sleep=_sleep), lambda *_, **__: None)
        with pytest.raises(Killed):
            await keeper.run()
    assert kept.state().served.pair != first
