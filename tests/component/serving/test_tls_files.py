"""TLS files that change while the server reads them: the served pair is always one that was checked."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from threading import Event, Thread
from typing import Any, Final

import pytest
from support.control_plane.mounted import Clock, Mounted, good, served
from support.waits import MAX_WAIT_SECONDS

from webhook.serving.certificate import ServingCertificate
from webhook.serving.tls import Contents, TLSFiles

_SWAPS: Final = 300
_HALFWAY: Final = 155


class Hook(TLSFiles, frozen=True, kw_only=True):
    """Files that another program changes after each read."""

    after: Callable[[], Any]

    def read_once(self) -> Contents:
        """As in TLSFiles."""
        contents = super().read_once()
        self.after()
        return contents


@pytest.mark.parametrize("swaps", [1, 2])
def test_a_swap_while_the_files_are_read_is_seen(mounted: Mounted, swaps: int) -> None:
    """The served pair is the one that was checked: one generation, the newest."""
    pairs = [good() for _ in range(swaps)]
    mounted.put(good().payload)
    rest = iter(pairs)

    def swap() -> None:
        for pair in rest:
            mounted.put(pair.payload)
            return

    files = mounted.files
    hook = Hook(cert_file=files.cert_file, key_file=files.key_file, after=swap)
    assert hook.read() == [pairs[-1].certificate, pairs[-1].key]


def test_a_kubelet_never_shows_a_torn_pair(mounted: Mounted) -> None:
    """Whatever the timing of swaps and checks, there is no problem, and the last pair is served."""
    pairs = [good() for _ in range(10)]
    mounted.put(pairs[0].payload)
    certificate = ServingCertificate(mounted.files, now=Clock())
    taken = Event()

    def swap() -> None:
        for number in range(_SWAPS):
            payload = pairs[number % len(pairs)].payload
            mounted.put({name: content + b"\n" * number for name, content in payload.items()})  # as never before
            if number == _HALFWAY:  # a busy machine may never have let a look fall between two swaps
                taken.wait(MAX_WAIT_SECONDS)

    swapping = Thread(target=swap)
    swapping.start()
    while swapping.is_alive():
        certificate.check_files()
        if served(certificate) == pairs[_HALFWAY % len(pairs)].der:
            taken.set()
    swapping.join()
    certificate.check_files()
    assert served(certificate) == pairs[(_SWAPS - 1) % len(pairs)].der
    assert certificate.failures == {}
    assert certificate.reloads > 1


def test_each_pair_is_served_by_a_context_of_its_own(mounted: Mounted) -> None:
    """A context in use is never loaded into, because files of two pairs would break every later handshake."""
    contexts: list[ssl.SSLContext] = []
    certificate = None
    for _ in range(5):
        mounted.put(good().payload)
        certificate = certificate or ServingCertificate(mounted.files, now=Clock())
        certificate.check_files()
        contexts.append(certificate.context)
    assert len(set(map(id, contexts))) == 5


async def test_the_files_are_looked_at_again_and_again(mounted: Mounted, caplog: pytest.LogCaptureFixture) -> None:
    """A check with an unexpected error is logged, and later checks still run."""
    troubles: list[str] = []

    def fail() -> None:
        if troubles:
            raise RuntimeError(troubles.pop())

    files = mounted.files
    watched = Hook(cert_file=files.cert_file, key_file=files.key_file, after=fail)
    certificate = ServingCertificate(watched, now=Clock(), check_seconds=0.001)
    caplog.clear()
    caplog.set_level(logging.INFO)
    troubles.append("broken")
    pair = good()
    mounted.put(pair.payload)
    keeping = asyncio.create_task(certificate.watch_files())
    async with asyncio.timeout(MAX_WAIT_SECONDS):
        await certificate.available.wait()
    keeping.cancel()
    assert served(certificate) == pair.der
    assert [record.getMessage() for record in caplog.records] == ["certificate check failed"]
