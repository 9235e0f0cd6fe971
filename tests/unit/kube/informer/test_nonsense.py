"""Bytes that no API server sends, and objects that can't be decoded, as rows, fed whole and byte by byte."""

from __future__ import annotations

import pytest
from support.fakes.watch_rows import A_MOVED, HTML, NO_STREAMS, WATCHING, A, Row, prove
from support.fakes.watching import CUTS, Cut, Driver, Says, lists, manager, pages
from support.models.model_api import event

from webhook.kube.informer.connection import Cause

ODD = manager("b", 12, 5)
DEEP = b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"11"},"x":' + b"[" * 100_000

ROWS = (
    Row(
        name="garbage bytes",
        says=(Says(event("MODIFIED", A_MOVED) + b"\x00\xff\xfe{}\n" + event("DELETED", manager("b", 12, "n2"))),),
        then="watch 11",
        shows={"a": "n3", "b": "n2"},
        cause=Cause.GARBAGE,
        problem="garbage: an event that can't be read: JSON is malformed",
    ),
    *(
        Row(
            name=name, says=(Says(body),), cause=Cause.GARBAGE, problem=f"garbage: an event that can't be read{problem}"
        )
        for name, body, problem in (
            ("HTML with status 200", HTML, ": JSON is malformed"),
            ("JSON that is not an event", b"[]\n", ": Expected `object`"),
            ("an event of nothing", b'{"type":"ADDED","object":null}\n', ""),
            (
                "an ERROR event that is not a Status",
                b'{"type":"ERROR","object":{"metadata":{},"code":"410"}}\n',
                ": Expected `int`, got `str`",
            ),
            (
                "a Status that is not UTF-8",
                b'{"type":"ERROR","object":{"code":410,"message":"\xff"}}\n',
                ": 'utf-8' codec",
            ),
            (
                "a name that is not UTF-8",
                b'{"type":"ADDED","object":{"metadata":{"name":"\xff","resourceVersion":"11"}}}\n',
                ": 'utf-8' codec",
            ),
            ("JSON deeper than can be read", DEEP + b"\n", ": maximum recursion depth"),
        )
    ),
    Row(
        name="an unreadable object in a page is left out",
        before=NO_STREAMS,
        says=(pages(A, ODD),),
        then="watch 10",
        shows={"a": "n1"},
    ),
    Row(
        name="an unreadable object in an event is forgotten",
        says=(Says(event("MODIFIED", ODD), seconds=300),),
        then="watch 12",
        shows={"a": "n1"},
    ),
    Row(
        name="an object that can be read again is back",
        before=(*WATCHING, Says(event("MODIFIED", ODD), seconds=300)),
        says=(Says(event("MODIFIED", manager("b", 13, "n2")), seconds=300),),
        then="watch 13",
    ),
)


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_nonsense(row: Row, cut: Cut) -> None:
    """The objects after each piece, the next request and the words are the row's, however the bytes came."""
    prove(row, cut)


@pytest.mark.parametrize(
    "says",
    [
        (*NO_STREAMS, pages(A, ODD)),
        (*NO_STREAMS, pages(A, continue_="t2"), pages(ODD)),
        (lists(A, ODD, version=12),),
        (*WATCHING, Says(event("MODIFIED", ODD), seconds=300)),
    ],
    ids=["in a page", "in the second page", "in a list by watch", "in an event"],
)
def test_an_unreadable_object_is_counted(says: tuple[Says, ...]) -> None:
    """The metric of unreadable objects needs the count."""
    driver = Driver()
    driver.play(*says)
    assert driver.machine.unreadable == 1
