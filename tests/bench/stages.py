"""Where the time of one review goes: microseconds of each stage in core, of the log line, and of counting it."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable, Iterator
from timeit import Timer
from typing import Any, Final

from webhook.core import admit
from webhook.core.api import admission_review
from webhook.core.opt_in import Policy
from webhook.core.patch import decision_patch, json_patch
from webhook.core.placement import virt_launcher
from webhook.core.view import ClusterView
from webhook.telemetry import log
from webhook.telemetry.metrics import Admissions
from webhook.telemetry.record import LOGGER, admission_record

_ROUNDS: Final = 50  # short, so that the best of many repeats meets a quiet moment of the machine


def stages(body: bytes, view: ClusterView, repeats: int) -> Iterator[tuple[str, float]]:
    """(stage, microseconds), the best of `repeats`."""
    request = admission_review.decode(body)
    pod, _ = request.pod()
    places = json_patch.places_of(pod)
    decision = virt_launcher.place_virt_launcher(pod, request.namespace or "", view, Policy())
    after = decision_patch.carried_out(pod, places, decision)
    assert isinstance(after, json_patch.Places)
    operations = json_patch.operations(places, after)
    answer = admit.admit(body, view, Policy())
    audit = answer.audit_annotations
    measured: dict[str, Callable[[], Any]] = {
        "decode the review": lambda: admission_review.decode(body).pod(),
        "decide": lambda: virt_launcher.place_virt_launcher(pod, request.namespace or "", view, Policy()),
        "write it into the affinity": lambda: decision_patch.carried_out(pod, places, decision),
        "build the patch": lambda: json_patch.operations(places, after),
        "encode the answer": lambda: admission_review.encode(request.uid, operations, audit_annotations=audit),
        "all of core": lambda: admit.admit(body, view, Policy()),
        "record and log line": _log_line(answer),
        "count it for /metrics": _counting(answer),
    }
    for name, call in measured.items():
        yield name, min(Timer(call).repeat(repeats, _ROUNDS)) / _ROUNDS * 1e6


def _counting(answer: Any) -> Callable[[], None]:
    """What /metrics takes of a call."""
    admissions, noted = Admissions(), admission_record(answer, 100)
    return lambda: admissions.count(noted)


def _log_line(answer: Any) -> Callable[[], None]:
    """What a call writes to the log, to a stream in memory: the write itself is the system's."""

    def note() -> None:
        with contextlib.redirect_stderr(stream):
            log.write(admission_record(answer, 100))

    stream = io.TextIOWrapper(io.BytesIO())
    LOGGER.setLevel(logging.INFO)
    return note
