"""Each way an open watch or a list can end, as a row. Each is fed whole and byte by byte, with the same result."""

from __future__ import annotations

import pytest
from support.fakes.watching import (
    A_MOVED,
    AGAIN,
    AGAIN_BY_PAGES,
    BOTH,
    CUTS,
    HTML,
    NO_STREAMS,
    A,
    B,
    Cut,
    Row,
    Says,
    error_event,
    lists,
    manager,
    pages,
    prove,
    refuses,
)
from support.models.model_api import bookmark, event, refusal, too_large

from webhook.kube.informer.connection import Cause

B_DELETED = event("DELETED", manager("b", 12, "n2"))

ROWS = (
    Row(
        name="events",
        says=(
            Says(
                event("MODIFIED", A_MOVED) + B_DELETED + event("ADDED", manager("c", 13, "n4")),
                seconds=300,
            ),
        ),
        then="watch 13",
        shows={"a": "n3", "c": "n4"},
        between=({"a": "n3", "b": "n2"}, {"a": "n3"}),
    ),
    Row(name="empty lines", says=(Says(b"\n\n" + bookmark(20) + b"\n", seconds=300),), then="watch 20"),
    Row(
        name="410 as HTTP status",
        says=(refuses(refusal(410, "Expired")),),
        then="list",
        cause=Cause.EXPIRED,
        problem="expired: 410 Expired: for a test",
    ),
    Row(
        name="410 as ERROR event after an event, which counts",
        says=(Says(event("MODIFIED", A_MOVED) + error_event(410, "Expired")),),
        then="list",
        shows={"a": "n3", "b": "n2"},
        cause=Cause.EXPIRED,
        problem="expired: 410",
    ),
    Row(
        name="too large a resource version as HTTP status",
        says=(refuses(too_large()),),
        then="list",
        cause=Cause.ERROR,
        problem="error: 504 Timeout: Too large resource version",
    ),
    Row(
        name="an event from before: the server was restored",
        says=(Says(event("MODIFIED", manager("a", 9, "n9"))),),
        then="list",
        cause=Cause.WENT_BACK,
        problem="went back: resourceVersion 9 after 10",
    ),
    Row(
        name="a bookmark from before, after a longer number",
        before=(lists(A, B, version=9_999),),
        says=(Says(bookmark("10000") + bookmark(9_998)),),
        then="list",
        shows=BOTH,
        cause=Cause.WENT_BACK,
        problem="went back: resourceVersion 9998 after 10000",
    ),
    Row(
        name="a version longer than any number",
        says=(Says(bookmark("9" * 5_000), seconds=300),),
        then="watch " + "9" * 5_000,
    ),
    Row(
        name="cut in the middle of a line",
        says=(Says(event("MODIFIED", A_MOVED) + B_DELETED[:-9], error="reset"),),
        then="watch 11",
        shows={"a": "n3", "b": "n2"},
        cause=Cause.CUT,
        problem="cut: reset",
    ),
    Row(
        name="ended in order in the middle of a line",
        says=(Says(event("MODIFIED", A_MOVED) + b'{"type":"DEL', seconds=300),),
        then="watch 11",
        shows={"a": "n3", "b": "n2"},
        cause=Cause.CUT,
        problem="cut: the answer ended before its end",
    ),
    Row(
        name="half-open: nothing for longer than bookmarks allow",
        says=(Says(error="nothing came for 90 s", silent=True, seconds=90),),
        cause=Cause.SILENT,
        problem="silent: nothing came for 90 s",
    ),
    Row(
        name="a watch that ends as soon as it has begun",
        says=(Says(seconds=0.1),),
        cause=Cause.CUT,
        problem="cut: the watch ended as soon as it had begun",
    ),
)


LIST_ROWS = (
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
        name="a server that refuses a list by watch with 422",
        before=(),
        says=(refuses(refusal(422, "Invalid")),),
        then="page",
        shows={},
        cause=Cause.UNSUPPORTED,
        problem="unsupported: 422 Invalid",
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
@pytest.mark.parametrize("row", [*ROWS, *LIST_ROWS], ids=lambda row: row.name)
def test_watch(row: Row, cut: Cut) -> None:
    """The objects after each piece, the next request and the words are the row's, however the bytes came."""
    prove(row, cut)
