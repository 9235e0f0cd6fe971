"""/healthz and /readyz in plain HTTP: the answers for different checks."""

from __future__ import annotations

from typing import Final

import pytest
from pytest_aiohttp import AiohttpClient

from webhook.component_base.health import Check, health_application

UP: Final = Check("shutdown", ok=True)
DOWN: Final = Check("shutdown", ok=False, detail="shutting down")
BROKEN: Final = Check("disk", ok=False, detail="no space left")
SYNCED: Final = Check("nodes", ok=True, detail="3 objects", gates=False)
UNSYNCED: Final = Check("persistentvolumes", ok=False, detail="not synced: 403 Forbidden", gates=False)
PATHS: Final = "expected /healthz or /readyz or /metrics"

ANSWERS: Final = {
    "alive": ("GET /healthz", [UP], 200, ["ok"]),
    "alive while draining": ("GET /healthz", [DOWN], 200, ["ok"]),
    "ready without what is not required": ("GET /readyz", [UP, SYNCED, UNSYNCED], 200, ["ok"]),
    "ready without any check": ("GET /readyz", [], 200, ["ok"]),
    "draining": ("GET /readyz", [DOWN, UNSYNCED], 503, ["shutdown: shutting down"]),
    "two failed": ("GET /readyz", [DOWN, BROKEN], 503, ["shutdown: shutting down; disk: no space left"]),
    "another query": ("GET /readyz?timeout=1s", [UP], 200, ["ok"]),
    "a head": ("HEAD /readyz", [DOWN], 503, []),
    "path below": ("GET /readyz/nodes", [UP], 404, [f"got path '/readyz/nodes', {PATHS}"]),
    "other method": ("POST /healthz", [UP], 405, ["got POST, expected GET or HEAD"]),
    "all of alive": ("GET /healthz?verbose", [DOWN], 200, ["[+]ping ok", "healthz check passed"]),
    "all, with a value": ("GET /readyz?verbose=1", [], 200, ["[+]ping ok", "readyz check passed"]),
    "more about what is well, and what is not required": (
        "GET /readyz?verbose",
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
    "all while draining": (
        "GET /readyz?verbose",
        [DOWN, SYNCED],
        503,
        ["[+]ping ok", "[-]shutdown failed: shutting down", "[+]nodes ok: 3 objects", "readyz check failed"],
    ),
}


@pytest.mark.parametrize(("line", "checks", "status", "lines"), ANSWERS.values(), ids=ANSWERS)
async def test_health_names_what_failed(
    aiohttp_client: AiohttpClient, line: str, checks: list[Check], status: int, lines: list[str]
) -> None:
    """Alive if it answers, ready if no gating check has failed. With `?verbose` each check has a line."""
    client = await aiohttp_client(health_application(lambda: checks))
    method, path = line.split()
    async with client.request(method, path) as reply:
        assert (reply.status, (await reply.text()).splitlines()) == (status, lines)
