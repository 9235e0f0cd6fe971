"""The record of an admission, and the log line made from it: JSON, names of objects only, one line whatever happens."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import builders
import pytest
from serving import cluster

from webhook import record
from webhook.core import admit
from webhook.core.admit import Answer
from webhook.core.placement import Policy
from webhook.documents import read
from webhook.manifests import Manifests

CONTENT: Final = "what-only-the-owner-of-a-pod-may-read"


@pytest.fixture(scope="module")
def view() -> Manifests:
    """The cluster of tests/serving.py."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster()})
    return Manifests(read(text, "cluster"), longhorn_namespace="longhorn-system")


def answer(view: Manifests, pod: builders.Object, **request: Any) -> Answer:
    """What is answered for a pod."""
    answer = admit.admit(json.dumps(builders.review(pod, **request)).encode(), view, Policy())
    assert isinstance(answer, Answer)
    return answer


def test_a_placed_pod_is_recorded_with_its_names(view: Manifests) -> None:
    """Who asked, what was decided, why, and how long it took."""
    pod = builders.virt_launcher_pod(claims=["disk"])
    found = record.of(answer(view, pod, uid="u-1", dryRun=True), 123)
    assert found == record.AdmissionRecord(
        time=found.time,
        level="info",
        message="admission",
        uid="u-1",
        decision="required",
        reason="ShareManagerPod",
        because="claim disk: pod share-manager-pvc-disk is on node node-a",
        duration_us=123,
        namespace="vms",
        pod="virt-launcher-db01-",
        vmi="db01",
        nodes=("node-a",),
        operations=2,
        dry_run=True,
    )
    assert abs(datetime.now(UTC) - found.time) < timedelta(minutes=1)


LEFT: Final = {
    "a pod that did not ask": (builders.virt_launcher_pod(opt_in=None), {}, ("NotOptedIn", 0, "virt-launcher-db01-")),
    "a pod that has no claim": (builders.virt_launcher_pod(), {}, ("NoClaims", 1, "virt-launcher-db01-")),
    "an update": (builders.virt_launcher_pod(), {"operation": "UPDATE"}, ("NotACreate", 0, None)),
    "no metadata": ({"metadata": {}, "spec": {}}, {"namespace": None}, ("NotVirtLauncher", 0, None)),
}


@pytest.mark.parametrize(("pod", "asked", "told"), LEFT.values(), ids=LEFT.keys())
def test_a_pod_left_alone_is_recorded_too(
    view: Manifests, pod: builders.Object, asked: dict[str, Any], told: tuple[str, int, str | None]
) -> None:
    """Unchanged, with the reason, and no node."""
    found = record.of(answer(view, pod, **asked), 1)
    assert (found.reason, found.operations, found.pod) == told
    assert (found.decision, found.nodes, found.dry_run) == ("unchanged", (), False)


def test_a_pod_of_another_owner_is_no_vmi(view: Manifests) -> None:
    """The VMI's name comes from the owner of that kind alone."""
    pod = builders.virt_launcher_pod()
    pod["metadata"]["ownerReferences"][0]["kind"] = "ReplicaSet"
    assert record.of(answer(view, pod), 1).vmi is None


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    """A function that gives the lines that this process has logged, as `serve` sets logging up."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers[:] = []  # pytest's own: they must not be closed
    yield lambda: [json.loads(line) for line in capsys.readouterr().err.removesuffix("\n").split("\n")]
    root.handlers[:] = before
    root.setLevel(level)


def test_an_admission_is_one_line_of_json(view: Manifests, logged: Any) -> None:
    """Time, level, a constant message, then the record's fields; what has its default is left out."""
    record.log(record.of(answer(view, builders.virt_launcher_pod(claims=["disk"]), uid="u-1"), 5))
    [line] = logged()
    assert list(line)[:3] == ["time", "level", "message"]
    assert datetime.fromisoformat(line["time"]).tzinfo is not None
    assert (line["level"], line["message"], line["uid"]) == ("info", "admission", "u-1")
    assert line["nodes"] == ["node-a"]
    assert "dry_run" not in line


def test_a_line_break_in_a_name_breaks_no_line(view: Manifests, logged: Any) -> None:
    """What a caller sends can't forge a line of the log."""
    record.log(record.of(answer(view, builders.virt_launcher_pod(), uid='u\n{"message":"forged"}\u2028'), 5))
    [line] = logged()
    assert line["uid"] == 'u\n{"message":"forged"}\u2028'


def test_no_content_of_a_pod_gets_into_the_log(view: Manifests, logged: Any) -> None:
    """Names of objects only: environment, images, labels and annotations stay out."""
    pod = builders.virt_launcher_pod(claims=["disk"], annotations={"note": CONTENT}, labels={"tier": CONTENT})
    pod["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": CONTENT}]
    record.log(record.of(answer(view, pod), 5))
    assert CONTENT not in json.dumps(logged())


def test_an_error_is_one_line_with_its_places(logged: Any) -> None:
    """The exception, and file and line of each frame, without a traceback's text."""
    record.start_logging()
    try:
        json.loads("{")
    except ValueError:
        record.LOGGER.exception("failed")
    [line] = logged()
    assert line["level"] == "error"
    assert line["error"].startswith("JSONDecodeError: Expecting property name")
    assert line["at"][0].startswith("test_record.py:")


def test_what_a_library_logs_is_json_too(logged: Any) -> None:
    """Warnings of aiohttp or asyncio come in the same form; what they tell at lower levels stays out."""
    record.start_logging()
    logging.getLogger("asyncio").warning("slow %s", "callback")
    logging.getLogger("asyncio").debug("chatter")
    assert [(line["level"], line["message"]) for line in logged()] == [("warning", "slow callback")]
