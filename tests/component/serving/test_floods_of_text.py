"""Callers that send the longest texts that fit into a review, to a real `serve`: it keeps and logs none of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest
from support.drivers.http_calls import request
from support.drivers.serving import Client, Pair, Serving, cluster, issue, resident_mib, serving, write_cluster
from support.objects import builders

from webhook.page.feed import KEPT

pytestmark = pytest.mark.slow

WARM_CALLS: Final = 20
GROWTH_MOST_MIB: Final = 24  # two bodies of 3 MiB at a time, each twice while it is read, and the allocator's arenas
TEXT_MOST_BYTES: Final = 1024  # of the answer to such a call, and of its line in the log
ORDINARY: Final = json.dumps(builders.review(builders.virt_launcher_pod(claims=["disk"]))).encode()
STATE: Final = b"GET /api/state HTTP/1.1\r\nHost: localhost\r\n\r\n"
LONG: Final = "x" * 690 * 1024


class Server(NamedTuple):
    """A `serve` process, and the certificate that its callers trust."""

    process: Serving
    pair: Pair

    @property
    def resident_mib(self) -> float:
        """The memory that the process holds."""
        return resident_mib(self.process.process.pid)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A replica that has answered some ordinary calls."""
    directory = tmp_path_factory.mktemp("flooded")
    pair = issue(directory)
    manifests = write_cluster(directory / "cluster.json", cluster())
    flags = {"tls-cert-file": pair.cert_file, "tls-private-key-file": pair.key_file, "manifests": manifests}
    with serving(*(f"--{name}={value}" for name, value in flags.items()), log=directory / "log") as process:
        with Client(process.port, pair.trust) as client:
            assert all(client.ask(request(ORDINARY)).response["allowed"] for _ in range(WARM_CALLS))
        yield Server(process, pair)


def dry_run(**metadata: Any) -> bytes:
    """A review of a pod with one volume more than the webhook evaluates."""
    pod = builders.virt_launcher_pod(claims=["disk"])
    pod["metadata"] |= metadata
    pod["spec"]["volumes"] = [{"name": str(each)} for each in range(513)]
    return json.dumps(builders.review(pod, dryRun=True)).encode()


def review(**request: Any) -> bytes:
    """A review with the longest body that the webhook reads."""
    return json.dumps(builders.review(builders.virt_launcher_pod(), **request)).encode()


OWNER: Final = {"kind": "VirtualMachineInstance", "name": LONG, "uid": "u-1"}
FLOODS: Final[dict[str, tuple[bytes, int, int]]] = {
    "a generateName of 690 KB": (dry_run(generateName=LONG), KEPT, 200),
    "an owner with a name of 690 KB": (dry_run(ownerReferences=[OWNER]), KEPT, 200),
    "a uid of 2.9 MB": (review(uid="u" * 2_900_000), KEPT // 3, 400),
    "a namespace of 2.9 MB": (review(namespace="n" * 2_900_000), KEPT // 3, 200),
}


@pytest.mark.parametrize(("body", "calls", "status"), FLOODS.values(), ids=FLOODS)
def test_a_flood_of_long_texts_is_neither_kept_nor_logged(server: Server, body: bytes, calls: int, status: int) -> None:
    """Memory and log stay as they are, and so does what the page gets."""
    before, logged = server.resident_mib, server.process.log.stat().st_size
    with Client(server.process.port, server.pair.trust) as client:
        answers = [client.ask(request(body)) for _ in range(calls)]
    assert {answer.status for answer in answers} == {status}
    growth, log = server.resident_mib - before, server.process.log.stat().st_size - logged
    with Client(server.process.health_port) as page:
        shown = len(page.ask(STATE).body)
    told = f"{growth:.0f} MiB more, {log / 1e3:.0f} KB of log, {shown / 1e3:.0f} KB for the page"
    print(f"{calls} calls: {told}")  # noqa: T201 - pytest -s tells it
    assert max(len(answer.body) for answer in answers) <= TEXT_MOST_BYTES
    assert growth <= GROWTH_MOST_MIB, told
    assert log <= calls * TEXT_MOST_BYTES, told
    assert shown <= KEPT * TEXT_MOST_BYTES, told
