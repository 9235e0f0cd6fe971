"""Thousands of broken reviews over real TLS connections: each gets a correct answer, and the server works on.

`make soak` sends more. FUZZ_SEED repeats a run: case N of a seed is always the same.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import jsonpatch
import pytest
from support.drivers.http_calls import Reply, request
from support.drivers.serving import Client, Pair, Serving, cluster, issue, resident_mib, serving, write_cluster
from support.objects import builders
from support.sizes import size
from support.strategies.fuzzing import cases

REVIEWS: Final = size("FUZZ_REVIEWS")
SEED: Final = int(os.environ.get("FUZZ_SEED", secrets.randbelow(2**32)))
_WARM_UP: Final = REVIEWS // 2
_SETTLED: Final = 10_000  # reviews in which the heap settles, as measured; bodies of 8 MiB are among them
_AGAIN_EVERY: Final = 8  # patched pods: one in so many is sent again
_GROWTH_MIB: Final = 8.0  # measured: 1 to 5, and none over the next 40,000
pytestmark = pytest.mark.soak

_OURS: Final = (
    ("spec", "affinity", "nodeAffinity"),
    ("metadata", "annotations", builders.DECISION),
    ("metadata", "annotations", builders.WRITTEN),
)


class Fuzzed(NamedTuple):
    """What came of all reviews: how many ended how, and by how much the server grew in the second half of them."""

    seen: Counter[str]
    growth_mib: float


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Fuzzed:
    """Every review was sent, and every answer judged: no 5xx, never `allowed: false`, no patch that does not apply or
    touches more, no traceback.
    """
    directory = tmp_path_factory.mktemp("fuzzed")
    pair = issue(directory)
    manifests = write_cluster(directory / "cluster.json", cluster())
    flags = ("--tls-cert-file", pair.cert_file, "--tls-private-key-file", pair.key_file, "--manifests", manifests)
    stream = cases(SEED, REVIEWS)
    with serving(*flags, log=directory / "log") as server:
        seen = drive(server, pair, islice(stream, _WARM_UP))
        warm = resident_mib(server.process.pid)
        seen += drive(server, pair, stream)
        growth = resident_mib(server.process.pid) - warm
        assert server.process.poll() is None
        reasons = read_log(server)
    sys.stdout.write(f"FUZZ_SEED={SEED} FUZZ_REVIEWS={REVIEWS}\n{dict(seen)}\n{dict(reasons)}\n")
    sys.stdout.write(f"{warm:.1f} MiB warm, {growth:+.1f} MiB after\n")
    return Fuzzed(seen, growth)


def test_no_review_breaks_the_server(fuzzed: Fuzzed) -> None:
    """Each was answered as it must be, and enough of them got far enough to be patched."""
    assert fuzzed.seen["patched"] > REVIEWS / 20


@pytest.mark.soak_only
def test_memory_is_flat(fuzzed: Fuzzed) -> None:
    """Once the heap has settled, which takes more reviews than `make test` sends."""
    assert _WARM_UP >= _SETTLED
    assert fuzzed.growth_mib < _GROWTH_MIB


def drive(server: Serving, pair: Pair, stream: Iterator[bytes]) -> Counter[str]:
    """Send every review and check every answer. Return the number of reviews for each result."""
    seen: Counter[str] = Counter()
    again: list[bytes] = []
    with Client(server.port, pair.trust) as client:
        for body, reply in answered(client, stream):
            seen[str(reply.status)] += 1
            patched = check_answer(body, reply)
            if patched is not None:
                seen["patched"] += 1
                if seen["patched"] % _AGAIN_EVERY == 0:
                    again.append(patched)
        for body, reply in answered(client, iter(again)):
            assert "patch" not in reply.response, repeat_hint("patched twice", body, reply)
    return seen


def answered(client: Client, stream: Iterator[bytes]) -> Iterator[tuple[bytes, Reply]]:
    """Yield each body with its answer. The next body is made while the server works."""
    body = next(stream, None)
    while body is not None:
        client.send(request(body))
        following = next(stream, None)
        yield body, client.reply()
        body = following


def check_answer(body: bytes, reply: Reply) -> bytes | None:
    """Fail if an answer is wrong. Return the review of the patched pod, None without a patch."""
    assert reply.status in (200, 400), repeat_hint("status", body, reply)
    if reply.status == 400:
        assert reply.sentence, repeat_hint("no sentence", body, reply)
        return None
    answer = json.loads(reply.body)
    response = answer["response"]
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert response["allowed"] is True, repeat_hint("not allowed", body, reply)
    assert ("patch" in response) == ("patchType" in response)
    reasons = set(response["auditAnnotations"].values())
    assert reasons.isdisjoint({"InternalError", "PatchDoesNotApply"}), repeat_hint("ours", body, reply)
    review = parsed(body)
    assert response["uid"] == review["request"]["uid"], repeat_hint("uid", body, reply)
    if "patch" not in response:
        return None
    assert response["patchType"] == "JSONPatch"
    pod = parsed(body)["request"]["object"]  # jsonpatch's own copy of a deep pod is too deep for Python 3.13
    operations = json.loads(base64.b64decode(response["patch"]))
    patched = jsonpatch.apply_patch(review["request"]["object"], operations, in_place=True)
    assert without_webhook_parts(patched) == without_webhook_parts(pod), repeat_hint("touches more", body, reply)
    review["request"]["object"] = patched
    return json.dumps(review).encode()


def parsed(body: bytes) -> Any:
    """Return the review as Python's own parser reads it, which takes more than the webhook's does."""
    return json.loads(body.decode(errors="replace"), strict=False, parse_int=number)


def number(digits: str) -> int | str:
    """Return the number. A number that int() refuses for its length stays a text, in a field that no rule reads."""
    return int(digits) if len(digits) < sys.int_info.default_max_str_digits else digits


def without_webhook_parts(pod: Any) -> Any:
    """Return the pod without the parts that the webhook may write. Null, empty and absent parents are equal."""
    pod = dict(pod)
    for parent, holder, field in _OURS:
        pod[parent] = dict(pod[parent])
        kept = {key: value for key, value in (pod[parent].pop(holder, None) or {}).items() if key != field}
        if kept:
            pod[parent][holder] = kept
    return pod


def read_log(server: Serving) -> Counter[str]:
    """Return the number of admissions for each reason. Fail on a line that is not JSON, an error, or a traceback."""
    reasons: Counter[str] = Counter()
    with server.log.open(encoding="utf-8") as lines:
        for text in lines:
            assert "Traceback" not in text, text
            line = json.loads(text)
            assert line["level"] != "error", text
            reasons[line.get("reason", line["message"])] += 1
    return reasons


def repeat_hint(what: str, data: bytes, reply: Reply) -> str:
    """Return the text for a failure: the case, and how to repeat it."""
    return f"{what}: FUZZ_SEED={SEED}\nsent {data[:4000]!r} ({len(data)} bytes)\ngot {reply}"
