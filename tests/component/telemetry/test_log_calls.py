"""The log lines of a call: each has the uid, and none has what only the owner of a pod may read."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

import pytest
from support.drivers.http_calls import PATH, request
from support.drivers.logging_here import Logged
from support.drivers.serving import cluster
from support.fakes.wire import listening
from support.objects import builders

from webhook.app.handler import admit_functions
from webhook.core import admit
from webhook.core.admit import Answer
from webhook.core.opt_in import Policy
from webhook.objects.cluster import Cluster
from webhook.objects.documents import read_documents
from webhook.objects.files import read_objects
from webhook.serving.routes import webhook_application
from webhook.telemetry import record as log
from webhook.telemetry.record import admission_record

CONTENT: Final = "what-only-the-owner-of-a-pod-may-read"
UID: Final = "705ab4f5-6393-11e8-b7cc-42010a800002"


def manifests() -> Cluster:
    """The cluster of tests/support/drivers/serving.py."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster()})
    return Cluster(read_objects(read_documents(text, "cluster")), longhorn_namespace="longhorn-system")


def secretive(**described: Any) -> builders.Object:
    """A VM start pod with secrets in every field that can have one."""
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
    """Its review, with an old object, by a user who also has secrets."""
    user = {"username": CONTENT, "groups": [CONTENT], "extra": {"token": [CONTENT]}}
    return builders.review(pod, uid=UID, userInfo=user, oldObject=pod, options={"note": CONTENT}, **fields)


class Broken:
    """A cluster that fails, with an error that quotes what it was asked."""

    def view(self) -> Self:
        """Return this object as its own view."""
        return self

    def forget(self, *_: object) -> None:
        """Do nothing: nothing was assumed."""

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


async def answered(body: bytes, source: Any, directory: Path) -> int:
    """Return the HTTP status of a call."""
    handler = webhook_application(admit_functions(source, Policy(), log.write))
    async with listening(handler, directory) as server:
        return (await server.ask(request(body))).status


@pytest.mark.parametrize("level", ["debug", "info"])
@pytest.mark.parametrize(("asked", "status"), BODIES.values(), ids=BODIES)
async def test_a_call_is_logged_with_its_uid_and_without_a_secret(
    logged: Logged, tmp_path: Path, asked: dict[str, Any], status: int, level: log.LogLevel
) -> None:
    """Names of objects only: no environment, images, labels, annotations, tokens or users."""
    logged.start(level)
    assert await answered(json.dumps(asked).encode(), manifests(), tmp_path) == status
    lines = logged.text()
    assert len(lines) == (0 if (asked, level) == (BODIES["another object"][0], "info") else 1)
    assert all(UID in line and CONTENT not in line for line in lines)


async def test_bad_reviews_are_logged_once_a_minute(logged: Logged, tmp_path: Path) -> None:
    """Whatever is wrong with them. The line has the count so far, and each has its answer."""
    logged.start("info")
    handler = webhook_application(admit_functions(manifests(), Policy(), log.write))
    async with listening(handler, tmp_path) as server:
        sentences = {(await server.ask(request(body))).sentence for body in (b"[]", b"{", b"{}") * 10}
    assert len(sentences) == 3
    [line] = logged.lines()
    assert (line["message"], line["so_far"]) == ("bad review", 1)


async def test_a_failure_of_ours_does_not_quote_the_pod(logged: Logged, tmp_path: Path) -> None:
    """The VM starts, with the reason. Two lines have the uid: the error's type and locations, and the admission."""
    logged.start("debug")
    handler = webhook_application(admit_functions(Broken(), Policy(), log.write))  # type: ignore[arg-type] # its point
    async with listening(handler, tmp_path) as server:
        response = (await server.ask(request(json.dumps(review(secretive())).encode()))).response
    assert (response["allowed"], response["uid"]) == (True, UID)
    assert response["auditAnnotations"]["reason"] == "InternalError"
    assert response.keys().isdisjoint({"patch", "patchType"})
    failed, admission = logged.text()
    assert "RuntimeError" in failed
    assert "owner.py:" in failed
    assert "InternalError" in admission
    assert all(UID in line and CONTENT not in line for line in (failed, admission))


async def test_a_failure_outside_an_admission_does_not_quote_the_call(logged: Logged, tmp_path: Path) -> None:
    """The server continues: the call gets a 500, and the log has the location."""

    async def failing(_body: bytes, _deadline: float) -> bytes:
        raise RuntimeError(CONTENT)

    logged.start("debug")
    async with listening(webhook_application({PATH: failing}), tmp_path) as server:
        assert (await server.ask(request(b"{}"))).status == 500
    [line] = logged.lines()
    assert (line["message"], line["error"]) == ("request failed", "RuntimeError")
    assert any(place.startswith("test_log_calls.py:") for place in line["at"])


@pytest.mark.parametrize("body", [b"", b"{", b'{"request":{"uid":1}}', b"\xff"], ids=repr)
async def test_a_call_without_a_uid_is_logged_as_that(logged: Logged, tmp_path: Path, body: bytes) -> None:
    """There is nothing to look for, and the line says that."""
    logged.start("info")
    assert await answered(body, manifests(), tmp_path) == 400
    [line] = logged.lines()
    assert (line["message"], line["uid"]) == ("bad review", None)


OF_ANOTHER: Final = builders.virt_launcher_pod()
OF_ANOTHER["metadata"]["ownerReferences"][0]["kind"] = "ReplicaSet"
POD: Final = "virt-launcher-db01-"
RECORDS: Final = {
    "a dry run": (
        builders.virt_launcher_pod(claims=["disk"]),
        {"dryRun": True},
        ("required", "ShareManagerPod", POD, "db01", ("node-a",), 3, True),
    ),
    "a pod that did not ask": (
        builders.virt_launcher_pod(opt_in=None),
        {},
        ("unchanged", "NotOptedIn", POD, "db01", (), 0, False),
    ),
    "a pod that has no claim": (
        builders.virt_launcher_pod(),
        {},
        ("unchanged", "NoClaims", POD, "db01", (), 2, False),
    ),
    "a pod of another owner": (OF_ANOTHER, {}, ("unchanged", "NoOwner", POD, None, (), 2, False)),
    "an update": (
        builders.virt_launcher_pod(),
        {"operation": "UPDATE"},
        ("unchanged", "NotACreate", None, None, (), 0, False),
    ),
}


@pytest.mark.parametrize(("pod", "asked", "told"), RECORDS.values(), ids=RECORDS)
def test_a_record_has_the_names_of_a_call(pod: builders.Object, asked: dict[str, Any], told: tuple[Any, ...]) -> None:
    """The name of the VirtualMachineInstance comes only from an owner of that kind."""
    answer = admit.admit(json.dumps(builders.review(pod, **asked)).encode(), manifests(), Policy())
    assert isinstance(answer, Answer)
    found = admission_record(answer, 123)
    seen = (found.decision, found.reason, found.pod, found.vmi, found.nodes, found.operations, found.dry_run)
    assert (seen, found.duration_us) == (told, 123)
    assert abs(datetime.now(UTC) - found.time) < timedelta(minutes=1)
