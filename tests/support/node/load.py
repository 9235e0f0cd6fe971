"""VM start pods that are created without a pause while something happens, and those among them that nobody decided."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from support.control_plane.kube_api import Api
from support.scenarios.admitting import FAIL_OPEN, REJECTIONS, WEBHOOK, Admission, Admitting, Counted

_CALLS: Final = 200
"""Calls, at least, before and after what happens, so that connections of the API server are in use."""


class Load:
    """The calls of one `under_load`; `lost` is known at its end."""

    def __init__(self, admitting: Admitting) -> None:
        self.admitting = admitting
        self.lost: list[Admission] = []


@contextmanager
def under_load(api: Api, claim: str, what: str, *, clients: int) -> Iterator[Load]:
    """Create pods with one claim until the end of the block, none of which is kept; prints how many, and how many lost.

    A call is lost if its pod was admitted without a decision. The API server must count the same, and refuse no pod.
    """
    counted = Counted(api)
    with Admitting(api, claim, clients=clients) as admitting:
        load = Load(admitting)
        admitting.until(more=_CALLS)
        yield load
        admitting.until(more=_CALLS)
    more = counted.more()
    load.lost = [pod for pod in admitting.admissions if not pod.decision]
    sys.stdout.write(f"{what}: {len(admitting.admissions)} calls, {len(load.lost)} lost\n")
    assert (admitting.refused, admitting.away, more(REJECTIONS, name=WEBHOOK)) == ([], [], 0)
    assert more(FAIL_OPEN, name=WEBHOOK) == len(load.lost)
