"""Whatever stands where the webhook should be, or does not: the pod is created as it is, in time, and it is counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import pytest
import trustme
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Object
from support.fakes.webhooks import Answer, HttpAnswer, patched, reviewed, silent_listener, webhook_server
from support.objects.builders import OPT_IN
from support.scenarios.admitting import FAIL_OPEN, REJECTIONS, WEBHOOK, Admission, Counted, admitted, until

REQUESTS: Final = "apiserver_admission_webhook_request_total"
DURATIONS: Final = "apiserver_admission_webhook_admission_duration_seconds"
TIMEOUT_SECONDS: Final = 5  # more than any call takes on a busy machine
_LONGEST_SECONDS: Final = 30  # that a webhook may take at all: a call that is given up before was by our timeout
_HOST: Final = f"{NAME}.{NAME}.svc"
_RIGHT_PATCH: Final = [{"op": "add", "path": "/metadata/annotations/patched", "value": "true"}]


class Fault(NamedTuple):
    """What stands there; the HTTP status that the API server counts the call under, and why, in its log."""

    server: Callable[[Installed], AbstractContextManager[None]]
    code: int
    why: str
    waits: bool = False


def answering(answer: Answer) -> Callable[[Installed], AbstractContextManager[None]]:
    """A server with the right certificate."""
    return lambda installed: webhook_server(
        installed.address, installed.port, installed.authority.issue_cert(_HOST), answer
    )


def certified(issue: Callable[[Installed], trustme.LeafCert]) -> Callable[[Installed], AbstractContextManager[None]]:
    """A server with another certificate that would answer rightly."""
    return lambda installed: webhook_server(
        installed.address, installed.port, issue(installed), lambda uid: patched(uid, _RIGHT_PATCH)
    )


def _expired(installed: Installed) -> trustme.LeafCert:
    return installed.authority.issue_cert(_HOST, not_after=datetime.now(UTC) - timedelta(minutes=1))


_TIMED_OUT: Final = "context deadline exceeded|Client.Timeout|i/o timeout"
FAULTS: Final = {
    "no server": Fault(lambda _: nullcontext(), 503, "connection refused"),
    "silent before TLS": Fault(
        lambda installed: silent_listener(installed.address, installed.port), 503, _TIMED_OUT, waits=True
    ),
    "silent when asked": Fault(answering(lambda _: None), 503, _TIMED_OUT, waits=True),
    "certificate of another authority": Fault(
        certified(lambda _: trustme.CA().issue_cert(_HOST)), 503, "certificate signed by unknown authority"
    ),
    "certificate of another name": Fault(
        certified(lambda installed: installed.authority.issue_cert("other.example.com")),
        503,
        f"certificate is valid for other.example.com, not {_HOST}",
    ),
    "expired certificate": Fault(certified(_expired), 503, "certificate has expired"),
    "HTTP 500": Fault(answering(lambda _: HttpAnswer(b"it broke\n", 500, "text/plain")), 500, "it broke"),
    "HTTP 400": Fault(
        answering(lambda _: HttpAnswer(b"no such field\n", 400, "text/plain")), 400, "rejected our request"
    ),
    "no JSON": Fault(answering(lambda _: HttpAnswer(b"<html></html>")), 503, "json parse error"),
    "nothing": Fault(answering(lambda _: HttpAnswer(b"")), 503, "0-length response"),
    "no review": Fault(answering(lambda _: HttpAnswer(b"{}")), 503, "webhook response was absent"),
    "no response": Fault(
        answering(lambda _: HttpAnswer(b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}')),
        503,
        "webhook response was absent",
    ),
    "another call's uid": Fault(answering(lambda _: patched("other", _RIGHT_PATCH)), 503, 'expected response.uid="'),
    "patch that is not a patch": Fault(answering(lambda uid: patched(uid, b"[")), 503, "undecodable patch"),
    "patch without a type": Fault(
        answering(lambda uid: reviewed(uid, patch="W10=")), 503, "response.patch but not response.patchType"
    ),
}
REJECTING: Final = {
    "allowed: false": lambda uid: reviewed(uid, allowed=False),
    "patch that does not apply": lambda uid: patched(uid, [{"op": "remove", "path": "/spec/nothing"}]),
}
BAD_VALUES: Final = {
    "word": "yes",
    "empty": "",
    "case": "True",
    "space": " true",
    "long": "x" * 4000,
    "odd": "\x7f\u2603",
}


@pytest.fixture(scope="module")
def before(installed: Installed) -> Admission:
    """A pod as it is created with no webhook at all."""
    installed.disable()
    return admitted(installed.plane.api, "disk")


@pytest.fixture(scope="module")
def called(installed: Installed, before: Admission) -> Iterator[Installed]:  # noqa: ARG001 - an order
    """The webhook is on, and nobody is there."""
    installed.enable(timeoutSeconds=TIMEOUT_SECONDS)
    counted = Counted(installed.plane.api)

    def tried() -> float:
        admitted(installed.plane.api)
        return counted.more()(FAIL_OPEN, name=WEBHOOK)

    until(tried, "a call")
    yield installed
    installed.disable()


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_pod_is_created_as_it_is(fault: Fault, called: Installed, before: Admission) -> None:
    """It is what it is without us, no later than the timeout, and the API server counts a failed call and says why."""
    api, log = called.plane.api, called.plane.api_server.log
    counted = Counted(api)
    logged = log.stat().st_size
    with fault.server(called):
        created = admitted(api, "disk")
    assert as_asked(created.pod) == as_asked(before.pod)
    seconds = created.created_at - created.asked_at
    assert (TIMEOUT_SECONDS if fault.waits else 0) <= seconds < _LONGEST_SECONDS
    more = counted.more()
    assert more(FAIL_OPEN, name=WEBHOOK, type="admit") == 1
    assert more(REQUESTS, name=WEBHOOK, operation="CREATE", code=str(fault.code), rejected="false") == 1
    assert more(REQUESTS, name=WEBHOOK) == 1
    assert more(REJECTIONS, name=WEBHOOK) == 0
    took = more(f"{DURATIONS}_sum", name=WEBHOOK, operation="CREATE", rejected="false")
    assert (took >= TIMEOUT_SECONDS) == fault.waits
    told = log.read_bytes()[logged:].decode()
    assert re.search(f"failing open {re.escape(WEBHOOK)}.*({fault.why})", told), told


@pytest.mark.parametrize("answer", REJECTING.values(), ids=REJECTING)
def test_two_answers_would_hold_a_pod_up(answer: Answer, called: Installed) -> None:
    """They refuse the pod in spite of failurePolicy Ignore, and count as rejections: what ours never gives."""
    counted = Counted(called.plane.api)
    with answering(answer)(called), pytest.raises(ApiError):
        admitted(called.plane.api, "disk")
    more = counted.more()
    assert (more(REJECTIONS, name=WEBHOOK), more(FAIL_OPEN, name=WEBHOOK)) == (1, 0)


def test_a_webhook_server_that_answers_changes_the_pod(called: Installed) -> None:
    """With the right certificate and a good answer the same server changes the pod: only the faults cause failures."""
    counted = Counted(called.plane.api)
    with answering(lambda uid: patched(uid, _RIGHT_PATCH))(called):
        created = admitted(called.plane.api, "disk")
    assert created.pod["metadata"]["annotations"]["patched"] == "true"
    assert counted.more()(FAIL_OPEN, name=WEBHOOK) == 0


@pytest.mark.parametrize("value", BAD_VALUES.values(), ids=BAD_VALUES)
def test_a_bad_value_is_a_warning(value: str, heard: Installed, before: Admission) -> None:
    """A VM with an unknown annotation value starts unchanged, and the client that creates the pod gets a warning."""
    counted = Counted(heard.plane.api)
    created = admitted(heard.plane.api, "disk", opt_in=value)
    [warning] = created.warnings
    assert warning.startswith(f"annotation {OPT_IN}: got ")
    assert "expected true, false, required or preferred" in warning
    wanted = as_asked(before.pod)
    wanted["metadata"]["annotations"][OPT_IN] = value
    assert as_asked(created.pod) == wanted
    more = counted.more()
    assert (more(REJECTIONS, name=WEBHOOK), more(FAIL_OPEN, name=WEBHOOK)) == (0, 0)


@pytest.fixture(scope="module")
def heard(called: Installed) -> Iterator[Installed]:
    """The webhook is on, and the program answers."""
    with called.serving():
        called.until_called()
        yield called


def as_asked(pod: Object) -> Object:
    """The pod without the fields that the API server sets for each pod."""
    own = ("name", "uid", "creationTimestamp", "managedFields")
    return {**pod, "metadata": {name: value for name, value in pod["metadata"].items() if name not in own}}
