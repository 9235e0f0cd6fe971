"""The page of a `serve` process: on and off by its setting, and with real decisions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.drivers import serving
from support.drivers.http_calls import Reply, request
from support.drivers.paging import asking
from support.drivers.serving import Client, Serving
from support.objects import builders

pytestmark = pytest.mark.slow


@contextmanager
def served(
    directory: Path, *flags: str, objects: Sequence[dict[str, Any]] | None = None
) -> Iterator[tuple[Serving, serving.Pair]]:
    """A `serve` process for these objects; without them for the cluster of tests/support/drivers/serving.py."""
    pair = serving.issue(directory)
    manifests = serving.write_cluster(directory / "cluster.json", objects or serving.cluster())
    words = ("--tls-cert-file", pair.cert_file, "--tls-private-key-file", pair.key_file, "--manifests", manifests)
    with serving.serving(*words, *flags, log=directory / "log") as server:
        yield server, pair


def state_of(reply: Reply) -> dict[str, Any]:
    """The answer of /api/state."""
    found: dict[str, Any] = json.loads(gzip.decompress(reply.body))
    return found


def test_the_page_is_there_and_shows_what_was_decided(tmp_path: Path) -> None:
    """The page is on by default. A call is shown with the reason in its log line."""
    review = request(json.dumps(builders.review(builders.virt_launcher_pod(claims=["disk"]))).encode())
    with served(tmp_path) as (server, pair):
        with Client(server.port, pair.trust) as api_server:
            api_server.ask(review)
        with Client(server.health_port) as reader:
            assert b"<h1>" in reader.ask(asking("/")).body
            state = state_of(reader.ask(asking("/api/state")))
            assert reader.ask(asking("/metrics")).status == 200
        line = server.until_logged("admission")
    (decision,) = state["decided"]["last"]
    assert {name: decision[name] for name in ("decision", "reason", "because")} == {
        name: line[name] for name in ("decision", "reason", "because")
    }
    assert (bool(state["manifests"]), state["rows"]) == (True, [])


def test_the_page_can_be_switched_off(tmp_path: Path) -> None:
    """Its paths then get 404, and the health paths answer."""
    with served(tmp_path, "--page", "off") as (server, _):
        for path in ("/", "/page.js", "/api/state"):
            with Client(server.health_port) as reader:
                assert reader.ask(asking(path)).status == 404
        with Client(server.health_port) as reader:
            assert reader.ask(asking("/healthz")).status == 200
