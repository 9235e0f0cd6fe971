"""Each way an API server, or a proxy before it, can refuse, as a row. Each is fed whole and byte by byte."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.fakes.watch_rows import BOTH, WATCHING, Row, prove
from support.fakes.watching import CUTS, RESOURCE, Cut, Driver, Says, refuses
from support.models.model_api import Answer, refusal

from webhook.kube.informer.connection import Cause

ROWS = (
    *(
        Row(
            name=f"{code} keeps what is known, and where it was",
            says=(refuses(refusal(code, "Refused")),),
            cause=cause,
            problem=f"{cause.value}: {code} Refused: for a test",
        )
        for code, cause in (
            (401, Cause.UNAUTHORIZED),
            (403, Cause.FORBIDDEN),
            (429, Cause.THROTTLED),
            (500, Cause.ERROR),
            (503, Cause.THROTTLED),
            (504, Cause.ERROR),
        )
    ),
    Row(
        name="any other 4xx: the same would be refused again",
        says=(refuses(refusal(422, "Invalid")),),
        then="list",
        cause=Cause.ERROR,
        problem="error: 422 Invalid",
    ),
    Row(
        name="not installed yet",
        before=(),
        says=(Says(b"404 page not found\n", 404),),
        then="list",
        shows={},
        cause=Cause.NOT_INSTALLED,
        problem="not installed: 404: 404 page not found",
    ),
    Row(
        name="installed no longer",
        says=(refuses(refusal(404, "NotFound")),),
        then="list",
        shows={},
        cause=Cause.NOT_INSTALLED,
        problem="not installed: 404 NotFound",
    ),
    Row(
        name="a code in the body of an HTTP error is not the API server's",
        says=(refuses(Answer(502, b'{"code": 404, "message": "no route"}')),),
        cause=Cause.ERROR,
        problem="error: 502 : no route",
    ),
    Row(
        name="an HTTP error with a page of HTML that never ends",
        says=(Says(b"<html>" + b"x" * 70_000, 502),),
        cause=Cause.ERROR,
        problem="error: 502: <html>xxx",
    ),
)


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_refusal(row: Row, cut: Cut) -> None:
    """The objects after each piece, the next request and the words are the row's, however the bytes came."""
    prove(row, cut)


def test_a_404_of_a_kind_that_every_cluster_has_empties_nothing() -> None:
    """PersistentVolumeClaims are always installed. The 404 is that of a proxy, so the objects stay."""
    driver = Driver(resource=replace(RESOURCE, prefix="/api/v1"))
    driver.play(*WATCHING, Says(b"404 page not found\n", 404))
    assert driver.shown == BOTH
    driver.ask()
    assert driver.asked[-1] == "list"
