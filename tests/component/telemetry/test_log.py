"""What `serve` logs: a line for each thing in either format, at each level, bounded, with the call's uid; no secret."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import pytest
from msgspec.structs import replace
from support.drivers.logging_here import Logged, logging_here
from support.drivers.serving import PATH, cluster, request
from support.fakes.wire import listening
from support.objects import builders

from webhook.app.handler import entries
from webhook.core.opt_in import Policy
from webhook.files.documents import read
from webhook.files.manifests import Manifests
from webhook.serving.routes import webhook_handler
from webhook.telemetry.log import Log
from webhook.telemetry.record import LOGGER, AdmissionRecord

CONTENT: Final = "what-only-the-owner-of-a-pod-may-read"
UID: Final = "705ab4f5-6393-11e8-b7cc-42010a800002"
FORMS: Final = ("json", "text")
LEVELS: Final = ("debug", "info", "warning", "error")
RECORD: Final = AdmissionRecord(
    time=datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC),
    level="info",
    message="admission",
    entry="virt-launcher",
    uid="u-1",
    decision="required",
    reason="ShareManagerPod",
    because="claim disk: pod share-manager-pvc-disk is on node node-a",
    duration_us=85,
    namespace="vms",
    vmi="db01",
    nodes=("node-a", "node-b"),
)
FORGED: Final = 'u\n{"message":"forged"}\u2028\x1b[31m\r'

each_form = pytest.mark.parametrize("form", FORMS)


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Iterator[Logged]:
    """What this process logs."""
    with logging_here(capsys) as found:
        yield found


def manifests() -> Manifests:
    """The cluster of tests/support/drivers/serving.py."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster()})
    return Manifests(read(text, "cluster"), longhorn_namespace="longhorn-system")


# Form.


def test_an_admission_is_one_line_of_json(logged: Logged) -> None:
    """Time, level, a constant message, then the record's fields; what has its default is left out."""
    logged.start().note(RECORD)
    [line] = logged.lines()
    assert list(line)[:3] == ["time", "level", "message"]
    assert datetime.fromisoformat(line["time"]) == RECORD.time
    assert (line["level"], line["message"], line["uid"]) == ("info", "admission", "u-1")
    assert line["nodes"] == ["node-a", "node-b"]
    assert "dry_run" not in line


def test_an_admission_is_one_line_of_text(logged: Logged) -> None:
    """The same for people: what has no blank in it stands without quotes."""
    logged.start("text").note(RECORD)
    [line] = logged.text()
    assert line == (
        "2026-01-01T12:00:00.250000Z INFO    admission entry=virt-launcher uid=u-1 decision=required "
        'reason=ShareManagerPod because="claim disk: pod share-manager-pvc-disk is on node node-a" duration_us=85 '
        "namespace=vms vmi=db01 nodes=node-a,node-b"
    )


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"listen": "https://127.0.0.1:9443"}, " listen=https://127.0.0.1:9443"),
        ({"until": datetime(2027, 1, 1, tzinfo=UTC)}, " until=2027-01-01T00:00:00Z"),
        ({"left_out": 3, "by": {"required ShareManagerPod": 3}}, ' left_out=3 by={"required ShareManagerPod": 3}'),
        ({"uid": None, "ok": True}, " uid=null ok=true"),
        ({"nodes": ["a b", "c"]}, ' nodes=["a b", "c"]'),
        ({"nodes": []}, " nodes="),
        ({"name": ""}, ' name=""'),
        ({}, ""),
    ],
    ids=["plain", "a time", "a table", "nothing and yes", "a list with a blank", "an empty list", "no text", "none"],
)
def test_fields_of_a_line_of_text(logged: Logged, fields: dict[str, Any], told: str) -> None:
    """Whatever they are, they are one line."""
    logged.start("text")
    LOGGER.warning("it happened", extra={"fields": fields})
    [line] = logged.text()
    assert re.fullmatch(r"\S+Z WARNING it happened", line.removesuffix(told))


@each_form
def test_a_line_break_in_a_name_breaks_no_line(logged: Logged, form: str) -> None:
    """What a caller sends can't forge a line of the log, and in text it can't speak to a terminal."""
    log = logged.start(form)
    log.note(replace(RECORD, uid=FORGED))
    LOGGER.warning("bad review", extra={"fields": {"uid": FORGED}})
    LOGGER.warning("said: %s", FORGED)
    if form == "json":
        admission, review, said = logged.lines()
        assert (admission["uid"], review["uid"], said["message"]) == (FORGED, FORGED, f"said: {FORGED}")
    else:
        told = logged.text()
        assert len(told) == 3
        assert all(line.isascii() and line.isprintable() for line in told)


@each_form
def test_an_error_is_one_line_with_its_places(logged: Logged, form: str) -> None:
    """The exception, and file and line of each frame, without a traceback's text."""
    logged.start(form)
    try:
        json.loads("{")
    except ValueError:
        LOGGER.exception("failed")
    [line] = logged.text()
    assert "JSONDecodeError: Expecting property name" in line
    assert "test_log.py:" in line
    assert "Traceback" not in line


# Levels.


@each_form
@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_the_least_that_is_logged(logged: Logged, form: str, level: str) -> None:
    """Of ours; an admission is told at info."""
    log = logged.start(form, level)
    for each in LEVELS:
        LOGGER.log(logging.getLevelNamesMapping()[each.upper()], "told at %s", each)
    log.note(RECORD)
    found = re.findall(r"told at (\w+)", "\n".join(lines := logged.text()))
    assert found == list(LEVELS[LEVELS.index(level) :])
    assert any("ShareManagerPod" in line for line in lines) == (level in ("debug", "info"))


@pytest.mark.parametrize(("level", "told"), [("debug", ["warning"]), ("info", ["warning"]), ("error", [])])
def test_libraries_tell_warnings_and_no_less(logged: Logged, level: str, told: list[str]) -> None:
    """In the same form; what they say at lower levels may be a body or a header, and stays out at every level."""
    logged.start("json", level)
    for name in ("asyncio", "kubernetes_asyncio.client.rest", "aiohttp.client"):
        for number in (logging.DEBUG, logging.INFO):
            logging.getLogger(name).log(number, "response body: %s", CONTENT)
    logging.getLogger("asyncio").warning("slow %s", "callback")
    lines = [json.loads(line) for line in logged.text()]
    assert [(line["level"], line["message"]) for line in lines] == [(each, "slow callback") for each in told]


# Storms.


@each_form
def test_a_storm_of_admissions_is_counted(logged: Logged, form: str) -> None:
    """The first have their lines; one more tells how many there were of each decision and reason."""
    log = logged.start(form, "info", 2)
    for decision, reason in [("required", "ShareManagerPod")] * 5 + [("unchanged", "NoClaims")] * 2:
        log.note(replace(RECORD, decision=decision, reason=reason))
    assert len(logged.text()) == 2
    assert log.left_out == 5
    logged.over()
    [line] = logged.text()
    assert "admissions left out" in line
    assert re.search(r'"required ShareManagerPod": ?3,', line)
    assert re.search(r'"unchanged NoClaims": ?2}', line)


def test_a_storm_of_bad_calls_is_counted_by_itself(logged: Logged) -> None:
    """Whoever sends nonsense can't fill the log, nor keep an admission's line out of it; other lines are all there."""
    log = logged.start("json", "info", 2)
    for number in range(5):
        LOGGER.warning("bad review", extra={"fields": {"uid": None, "because": str(number)}})
    for _ in range(5):
        LOGGER.warning("certificate not taken", extra={"fields": {"because": "expired"}})
    log.note(RECORD)
    told = [line["message"] for line in logged.lines()]
    assert told == ["bad review"] * 2 + ["certificate not taken"] * 5 + ["admission"]
    log.flush()
    [line] = logged.lines()
    assert (line["message"], line["left_out"], line["by"]) == ("lines left out", 3, {"bad review": 3})


# Calls: each line has the uid, and none has what is nobody's business.


def secretive(**described: Any) -> builders.Object:
    """A VM start pod with something secret wherever a pod can have it."""
    annotations = {"note": CONTENT, "kubectl.kubernetes.io/last-applied-configuration": f'{{"token":"{CONTENT}"}}'}
    pod = builders.virt_launcher_pod(claims=["disk"], annotations=annotations, labels={"tier": CONTENT}, **described)
    pod["metadata"]["managedFields"] = [{"manager": CONTENT}]
    pod["spec"]["containers"] = [
        {
            "name": "compute",
            "image": f"registry.example/{CONTENT}",
            "args": ["--token", CONTENT],
            "env": [{"name": "PASSWORD", "value": CONTENT}],
            "envFrom": [{"secretRef": {"name": CONTENT}}],
        }
    ]
    pod["spec"]["imagePullSecrets"] = [{"name": CONTENT}]
    pod["spec"]["volumes"].append({"name": "cloud-init", "secret": {"secretName": CONTENT}})
    pod["spec"]["serviceAccountName"] = CONTENT
    return pod


def review(pod: Any, **fields: Any) -> dict[str, Any]:
    """A review of it, by a user who has something to hide too, and with an old object."""
    user = {"username": CONTENT, "groups": [CONTENT], "extra": {"token": [CONTENT]}}
    return builders.review(pod, uid=UID, userInfo=user, oldObject=pod, options={"note": CONTENT}, **fields)


class Broken:
    """A cluster that fails, and quotes what it was asked about."""

    def view(self) -> Self:
        """Itself."""
        return self

    def forget(self, *_: object) -> None:
        """Nothing was assumed."""

    def __getattr__(self, question: str) -> Any:
        raise RuntimeError(CONTENT, question)


BODIES: Final = {
    "a pod that is placed": (review(secretive()), 200),
    "a pod that is left alone": (review(secretive(opt_in=None)), 200),
    "a pod whose annotation is no word of ours": (review(secretive(opt_in="yes")), 200),
    "a pod of no spec": (review({**secretive(), "spec": CONTENT}), 400),
    "a pod whose annotations are none": (review({"metadata": {"annotations": [CONTENT]}, "spec": {}}), 400),
    "a pod whose label is none": (review({"metadata": {"labels": {CONTENT: 1}}, "spec": {}}), 400),
    "another version": ({**review(secretive()), "apiVersion": "admission.k8s.io/v1beta1"}, 400),
    "another object": (review({"data": CONTENT}, kind={"group": "", "version": "v1", "kind": "Secret"}), 200),
}


async def answered(body: bytes, log: Log, source: Any, directory: Path) -> int:
    """The HTTP status of a call, of a webhook that logs there."""
    handler = webhook_handler(entries(source, Policy(), log.note))
    async with listening(handler, directory) as server:
        return (await server.ask(request(body))).status


@pytest.mark.parametrize("words", [(form, level) for form in FORMS for level in ("debug", "info")], ids=" ".join)
@pytest.mark.parametrize(("asked", "status"), BODIES.values(), ids=BODIES)
async def test_a_call_is_logged_with_its_uid_and_without_a_secret(
    logged: Logged, tmp_path: Path, asked: dict[str, Any], status: int, words: tuple[str, str]
) -> None:
    """Names of objects only: environment, images, labels, annotations, tokens and users stay out."""
    log = logged.start(*words)
    assert await answered(json.dumps(asked).encode(), log, manifests(), tmp_path) == status
    [line] = logged.text()
    assert UID in line
    assert CONTENT not in line


@each_form
async def test_a_failure_of_ours_does_not_quote_the_pod(logged: Logged, tmp_path: Path, form: str) -> None:
    """Two lines with the uid: the error's type and places, and the admission. What the error says may be the pod's."""
    log = logged.start(form, "debug")
    assert await answered(json.dumps(review(secretive())).encode(), log, Broken(), tmp_path) == 200
    failed, admission = logged.text()
    assert "RuntimeError" in failed
    assert "share_managers.py:" in failed
    assert "InternalError" in admission
    assert all(UID in line and CONTENT not in line for line in (failed, admission))


async def test_a_failure_outside_an_admission_does_not_quote_the_call(logged: Logged, tmp_path: Path) -> None:
    """Nor does it end the server: the call gets a 500, and the log says where it was."""

    async def failing(_body: bytes, _deadline: float) -> bytes:
        raise RuntimeError(CONTENT)

    logged.start("json", "debug")
    async with listening(webhook_handler({PATH: failing}), tmp_path) as server:
        assert (await server.ask(request(b"{}"))).status == 500
    [line] = logged.lines()
    assert (line["message"], line["error"]) == ("request failed", "RuntimeError")
    assert any(place.startswith("test_log.py:") for place in line["at"])


@pytest.mark.parametrize("body", [b"", b"{", b'{"request":{"uid":1}}', b"\xff"], ids=repr)
async def test_a_call_without_a_uid_is_logged_as_that(logged: Logged, tmp_path: Path, body: bytes) -> None:
    """There is nothing to look for, and the line says so."""
    log = logged.start()
    assert await answered(body, log, manifests(), tmp_path) == 400
    [line] = logged.lines()
    assert (line["message"], line["uid"]) == ("bad review", None)
