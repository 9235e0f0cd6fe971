"""Changes of the pair while it is read or connections are made: none fails, and no connection is closed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import pytest
from support.control_plane.mounted import NAME, Authority, Issued, Mounted, good
from support.drivers.http_calls import request
from support.fakes.wire import Listening, Wire, echoing
from support.waits import MAX_WAIT_SECONDS

from webhook.component_base.pem import Problem
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


async def _heard(step: Callable[[], Any], incoming: ssl.MemoryBIO, wire: Wire) -> Any:
    """Run a step of a TLS client in memory, with all its waits."""
    while True:
        try:
            return step()
        except ssl.SSLWantReadError:
            more = await wire._read()
            assert more, "the server hung up"
            incoming.write(more)


async def test_a_handshake_that_is_under_way_is_finished_with_the_pair_it_began_with(mounted: Mounted) -> None:
    """The client has seen one certificate, so a signature of another would fail."""
    reloading = Reloading(mounted)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = reloading.trust.wrap_bio(incoming, outgoing, server_hostname=NAME)
    async with reloading.listening() as server, await Wire.open(server.port) as wire:
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        await wire.send(outgoing.read())
        incoming.write(await wire._read())
        reloading.rotate()
        await _heard(client.do_handshake, incoming, wire)
        client.write(CALL)
        await wire.send(outgoing.read())
        answer = await _heard(client.read, incoming, wire)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert client.getpeercert(binary_form=True) == reloading.pairs[0].der


async def test_a_caller_that_names_no_server_gets_the_new_pair_too(mounted: Mounted) -> None:
    """A client that connects to an IP address sends no server name."""
    reloading = Reloading(mounted)
    reloading.trust.check_hostname = False
    async with reloading.listening() as server:
        for _ in range(2):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", server.port, ssl=server.trust, server_hostname=""
            )
            async with Wire(reader, writer) as wire:
                assert (await wire.ask(CALL)).status == 200
                assert shown(wire) == reloading.pairs[-1].der
            reloading.rotate()


async def test_a_torn_pair_breaks_no_handshake(mounted: Mounted) -> None:
    """The last good pair is served as long as there is no better one."""
    reloading = Reloading(mounted)
    async with reloading.listening() as server:
        for harm in ("tls.crt", "tls.key"):
            mounted.put({**reloading.pairs[0].payload, harm: good().payload[harm]})
            reloading.certificate.check_files()
            async with await server.connect() as wire:
                assert (await wire.ask(CALL)).status == 200
                assert shown(wire) == reloading.pairs[0].der
    assert reloading.certificate.failures == {Problem.KEY_MISMATCH: 1}


async def test_no_session_is_resumed(mounted: Mounted) -> None:
    """A caller that connects again makes a full handshake, with the current pair and a new verification."""
    reloading = Reloading(mounted)
    async with reloading.listening() as server, await server.connect() as wire:
        assert (await wire.ask(CALL)).status == 200
        assert not wire._writer.get_extra_info("ssl_object").session.has_ticket
