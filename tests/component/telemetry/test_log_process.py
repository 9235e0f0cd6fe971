"""The log of a real `serve`: its format and level, a burst, and the counts in /metrics."""

from __future__ import annotations

import json
import re
import signal
import ssl
import sys
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from support.drivers.http_calls import request
from support.drivers.scraping import scrape
from support.drivers.serving import Client, cluster, issue, serving, spawned, write_cluster
from support.objects import builders
from support.scenarios.admitting import until
from support.waits import MAX_WAIT_SECONDS

from webhook.telemetry.exposition import Family

pytestmark = pytest.mark.slow

BODY: Final = request(json.dumps(builders.review(builders.virt_launcher_pod(claims=["disk"]))).encode())
STORM: Final = 60
SERVING: Final = re.compile(r" serving listen=https://127\.0\.0\.1:(?P<port>\d+) .*\n")


class Ready(NamedTuple):
    """The flags that `serve` always needs, and a client that trusts it."""

    flags: list[str]
    trust: ssl.SSLContext


@pytest.fixture
def ready(tmp_path: Path) -> Ready:
    """A certificate and a cluster."""
    pair = issue(tmp_path)
    manifests = write_cluster(tmp_path / "cluster.json", cluster())
    named = {"tls-cert-file": pair.cert_file, "tls-private-key-file": pair.key_file, "manifests": manifests}
    return Ready([f"--{name}={value}" for name, value in named.items()] + ["--drain-seconds=0"], pair.trust)


def test_a_burst_is_logged_as_a_count(ready: Ready, tmp_path: Path) -> None:
    """Each admission is answered. It has its own line, or is in the count of its second, and it is in /metrics."""
    with serving(*ready.flags, "--log-admissions-per-second=5", log=tmp_path / "log") as server:
        with Client(server.port, ready.trust) as client:
            assert {client.ask(BODY).status for _ in range(STORM)} == {200}
        left_out = scrape(server.health_port).value(Family.LOG_LINES_LEFT_OUT.title)
        server.signal(signal.SIGTERM)
        assert server.process.wait(MAX_WAIT_SECONDS) == 0
        lines = server.lines()
    told = Counter[str]()
    for line in lines:
        told.update(line.get("by", {}))
    written = len([line for line in lines if line["message"] == "admission"])
    assert set(told) == {"required ShareManagerPod"}
    assert told.total() == left_out == STORM - written
    assert 5 <= written < STORM


def test_text_is_for_people(ready: Ready, tmp_path: Path) -> None:
    """Every line of text has time, level, message, and its fields by name."""
    log, free = tmp_path / "log", ["--listen=127.0.0.1:0", "--health-listen=127.0.0.1:0"]
    command = [sys.executable, "-m", "webhook", "serve", *ready.flags, *free, "--log-format=text"]
    with spawned(command, log) as process:
        until(lambda: process.poll() is not None or SERVING.search(log.read_text()), log.read_text)
        found = SERVING.search(log.read_text())
        assert found, log.read_text()
        with Client(int(found["port"]), ready.trust) as client:
            assert client.ask(BODY).status == 200
            assert client.ask(request(b"{}")).status == 400
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_SECONDS) == 0
    lines = log.read_text().splitlines()
    odd = [line for line in lines if not re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z (INFO|WARNING) +[a-z]", line)]
    assert odd == []
    assert len([line for line in lines if " admission entry=virt-launcher " in line]) == 1
    assert any(line.endswith('because="kind: got nothing, expected AdmissionReview"') for line in lines)
