"""Changes of the pair while it is read or connections are made: none fails, and no connection is closed."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Final

import pytest
from support.control_plane.mounted import Authority, Issued, Mounted
from support.drivers.http_calls import request
from support.fakes.wire import Listening, Wire, echoing
from support.waits import MAX_WAIT_SECONDS

from webhook.serving.certificate import ServingCertificate

pytestmark = pytest.mark.slow

CALL: Final = request(b"{}")
_ROTATIONS: Final = 30
_CALLERS: Final = 4


class Reloading:
    """A listener with a pair from a volume; its callers trust the authorities of all its pairs."""

    def __init__(self, mounted: Mounted) -> None:
        self._mounted = mounted
        self._authority = Authority()
        self.pairs: list[Issued] = []
        self.trust = self._authority.trust()
        self._store()
        self.certificate = ServingCertificate(mounted.files)

    def listening(self) -> AbstractAsyncContextManager[Listening]:
        """Run the listener."""
        return echoing(self.certificate, self.trust)

    def _store(self) -> None:
        self.pairs.append(self._authority.issue())
        self._mounted.put(self.pairs[-1].payload)

    def rotate(self) -> None:
        """Swap in a new pair, and check the files."""
        self._store()
        self.certificate.check_files()
        assert self.certificate.problem is None


def shown(wire: Wire) -> bytes:
    """Return the certificate of a connection."""
    certificate: bytes = wire._writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return certificate


async def test_no_handshake_fails_and_no_connection_ends_while_pairs_are_swapped(mounted: Mounted) -> None:
    """Callers that never pause see each pair in its turn. Their old connections are still answered."""
    reloading = Reloading(mounted)
    seen: asyncio.Queue[bytes] = asyncio.Queue()

    async with reloading.listening() as server, asyncio.timeout(MAX_WAIT_SECONDS):

        async def call() -> None:
            while True:
                async with await server.connect() as wire:
                    assert (await wire.ask(CALL)).status == 200
                    seen.put_nowait(shown(wire))

        held = [await server.connect() for _ in range(_CALLERS)]
        async with asyncio.TaskGroup() as group:
            callers = [group.create_task(call()) for _ in range(_CALLERS)]
            for _ in range(_ROTATIONS):
                reloading.rotate()
                while await seen.get() != reloading.pairs[-1].der:
                    pass
                assert {(await wire.ask(CALL)).status for wire in held} == {200}
            for caller in callers:
                caller.cancel()
        assert {shown(wire) for wire in held} == {reloading.pairs[0].der}
        for wire in held:
            wire.hang_up()
    assert reloading.certificate.reloads == _ROTATIONS


async def test_no_session_is_resumed(mounted: Mounted) -> None:
    """A caller that connects again makes a full handshake, with the current pair and a new verification."""
    reloading = Reloading(mounted)
    async with reloading.listening() as server, await server.connect() as wire:
        assert (await wire.ask(CALL)).status == 200
        assert not wire._writer.get_extra_info("ssl_object").session.has_ticket
