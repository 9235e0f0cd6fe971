"""/healthz and /readyz over real sockets, in plain HTTP: the answers for different checks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

import pytest
from support.fakes.wire import Wire, plain_wire

from webhook.component_base.health import Check, health_application

UP: Final = Check("shutdown", ok=True)
DOWN: Final = Check("shutdown", ok=False, detail="shutting down")
BROKEN: Final = Check("disk", ok=False, detail="no space left")
SYNCED: Final = Check("nodes", ok=True, detail="3 objects", gates=False)
UNSYNCED: Final = Check("persistentvolumes", ok=False, detail="not synced: 403 Forbidden", gates=False)


def health(checks: Sequence[Check]) -> AbstractAsyncContextManager[Wire]:
    """A connection to a health listener with these checks."""
    return plain_wire(health_application(lambda: checks))


SENTENCES: Final = {
    "alive": ("GET /healthz", [UP], 200, "ok"),
    "alive while draining": ("GET /healthz", [DOWN], 200, "ok"),
    "ready": ("GET /readyz", [UP], 200, "ok"),
    "ready without what is not required": ("GET /readyz", [UP, SYNCED, UNSYNCED], 200, "ok"),
    "ready without any check": ("GET /readyz", [], 200, "ok"),
    "draining": ("GET /readyz", [DOWN, UNSYNCED], 503, "shutdown: shutting down"),
    "two failed": ("GET /readyz", [DOWN, BROKEN], 503, "shutdown: shutting down; disk: no space left"),
    "another query": ("GET /readyz?timeout=1s", [UP], 200, "ok"),
    "other path": ("GET /livez", [UP], 404, "got path '/livez', expected /healthz or /readyz or /metrics"),
    "path below": (
        "GET /readyz/nodes",
        [UP],
        404,
        "got path '/readyz/nodes', expected /healthz or /readyz or /metrics",
    ),
    "other method": ("POST /healthz", [UP], 405, "got POST, expected GET or HEAD"),
    "no HTTP": ("garbage", [UP], 400, "no valid HTTP request: "),
}


@pytest.mark.parametrize(("line", "checks", "status", "sentence"), SENTENCES.values(), ids=SENTENCES.keys())
async def test_health_is_one_sentence(line: str, checks: list[Check], status: int, sentence: str) -> None:
    """Alive if it answers, ready if no gating check has failed. The answer names failed checks."""
    async with health(checks) as wire:
        reply = await wire.ask(f"{line} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert reply.status == status
    assert reply.sentence == sentence or (status == 400 and reply.sentence.startswith(sentence))


VERBOSE: Final = {
    "alive": ("healthz?verbose", [DOWN], 200, ["[+]ping ok", "healthz check passed"]),
    "ready": ("readyz?verbose", [UP], 200, ["[+]ping ok", "[+]shutdown ok", "readyz check passed"]),
    "with a value": ("readyz?verbose=1", [], 200, ["[+]ping ok", "readyz check passed"]),
    "more about what is well, and what is not required": (
        "readyz?verbose",
        [UP, SYNCED, UNSYNCED],
        200,
        [
            "[+]ping ok",
            "[+]shutdown ok",
            "[+]nodes ok: 3 objects",
            "[-]persistentvolumes failed: not synced: 403 Forbidden (not required)",
            "readyz check passed",
        ],
    ),
    "draining": (
        "readyz?verbose",
        [DOWN, SYNCED],
        503,
        ["[+]ping ok", "[-]shutdown failed: shutting down", "[+]nodes ok: 3 objects", "readyz check failed"],
    ),
}


@pytest.mark.parametrize(("path", "checks", "status", "lines"), VERBOSE.values(), ids=VERBOSE.keys())
async def test_verbose_names_every_check(path: str, checks: list[Check], status: int, lines: list[str]) -> None:
    """One line for each check and one for all, as in the API server's /readyz?verbose."""
    async with health(checks) as wire:
        reply = await wire.ask(f"GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert (reply.status, reply.body.decode().splitlines()) == (status, lines)


async def test_health_answers_a_head_without_a_body() -> None:
    """HEAD is a GET without the body in the answer."""
    async with health([UP]) as wire:
        await wire.send(b"HEAD /healthz HTTP/1.0\r\n\r\n")
        head, _, body = (await wire.rest()).partition(b"\r\n\r\n")
    assert (head.split(b" ")[1], body) == (b"200", b"")
