"""Each way a list can end, as a row. Each row is fed whole and byte by byte, with the same result."""

from __future__ import annotations

import pytest
from support.fakes.watch_rows import AGAIN, AGAIN_BY_PAGES, HTML, NO_STREAMS, A, B, Row, prove
from support.fakes.watching import CUTS, Cut, Says, pages, refuses
from support.models.model_api import bookmark, event, refusal

from webhook.kube.informer.connection import Cause

ROWS = (
    Row(
        name="a server that refuses a list by watch with 400",
        before=(),
        says=(refuses(refusal(400, "BadRequest")),),
        then="page",
        shows={},
        cause=Cause.UNSUPPORTED,
        problem="unsupported: 400 BadRequest",
    ),
    Row(
        name="a server that ignores that a list is asked for: a plain bookmark",
        before=(),
        says=(Says(event("ADDED", A) + bookmark(10)),),
        then="page",
        shows={},
        cause=Cause.UNSUPPORTED,
        problem="unsupported: no streaming list",
    ),
    Row(
        name="a page is asked for again when its answer broke off",
        before=(*NO_STREAMS, pages(A, continue_="t2")),
        says=(pages(B, error="reset")._replace(body=b'{"metadata":{"resourceVersion":"10"},"items":[{'),),
        then="page t2",
        shows={},
        cause=Cause.CUT,
        problem="cut: reset",
    ),
    Row(
        name="a page that ends in the middle of its JSON",
        before=NO_STREAMS,
        says=(Says(b'{"metadata":{"resourceVersion":"10"},"items":[{"metadata":{"name":"a"'),),
        then="page",
        shows={},
        cause=Cause.GARBAGE,
        problem="garbage: a list that can't be read",
    ),
    Row(
        name="a page of null items is an empty collection",
        before=AGAIN_BY_PAGES,
        says=(Says(b'{"metadata":{"resourceVersion":"20"},"items":null}'),),
        then="watch 20",
        shows={},
    ),
    Row(
        name="a second streaming list that is cut short",
        before=AGAIN,
        says=(Says(event("ADDED", A), error="reset"),),
        then="list",
        cause=Cause.CUT,
        problem="cut: reset",
    ),
    Row(
        name="a second streaming list that ends in order, but too early",
        before=AGAIN,
        says=(Says(event("ADDED", A), seconds=10),),
        then="list",
        cause=Cause.CUT,
        problem="cut: the answer ended before its end",
    ),
    *(
        Row(
            name=f"a page of a second list that is {name}",
            before=AGAIN_BY_PAGES,
            says=(Says(body),),
            then="page",
            cause=Cause.GARBAGE,
            problem=f"garbage: a list{problem}",
        )
        for name, body, problem in (
            ("HTML", HTML, ""),
            ("empty", b"", ""),
            (
                "JSON of another program",
                b'{"metadata":{},"status":"Success"}',
                " that can't be read: a list without a resourceVersion",
            ),
        )
    ),
    Row(
        name="a second streaming list that is JSON of another program",
        before=AGAIN,
        says=(
            Says(b'{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'),
        ),
        then="list",
        cause=Cause.GARBAGE,
        problem="garbage: an event that can't be read: an event without a resourceVersion",
    ),
)


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_list(row: Row, cut: Cut) -> None:
    """The objects after each piece, the next request and the words are the row's, however the bytes came."""
    prove(row, cut)
