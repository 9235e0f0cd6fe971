"""Each way to refuse, bytes that no API server sends, and objects that can't be decoded, as rows.

Each row is fed whole and byte by byte.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from support.fakes.watching import (
    A_MOVED,
    BOTH,
    CUTS,
    HTML,
    NO_STREAMS,
    RESOURCE,
    RESOURCES,
    WATCHING,
    A,
    B,
    Cut,
    Driver,
    Row,
    Says,
    error_event,
    lists,
    manager,
    pages,
    prove,
    refuses,
)
from support.models.model_api import Answer, event, refusal

from webhook.core.view import Kind
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
        name="429 as ERROR event",
        says=(Says(error_event(429, "TooManyRequests")),),
        cause=Cause.THROTTLED,
        problem="throttled: 429",
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
        name="a 404 of a proxy on the way",
        says=(Says(HTML, 404),),
        then="list",
        cause=Cause.ERROR,
        problem="error: 404: <html>",
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


@pytest.mark.parametrize("kind", [Kind.PERSISTENT_VOLUME_CLAIM, Kind.CSI_NODE])
def test_a_404_of_a_kind_that_every_cluster_has_empties_nothing(kind: Kind) -> None:
    """These kinds are always installed. The 404 is that of a proxy, so the objects stay."""
    driver = Driver(resource=replace(RESOURCE, prefix=RESOURCES[kind].prefix))
    driver.play(*WATCHING, Says(b"404 page not found\n", 404))
    assert driver.shown == BOTH
    driver.ask()
    assert driver.asked[-1] == "list"


ODD = manager("b", 12, 5)
DEEP = b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"11"},"x":' + b"[" * 100_000
LEVELS = 10_000  # sigs.k8s.io/json, maxNestingDepth: what an API server stores, for anybody who may create an object
NESTED = b'{"f:a":' * LEVELS + b"{}" + b"}" * LEVELS


def nested(text: bytes) -> bytes:
    """The JSON with an object in place of 0 that is nested deeper than Python follows."""
    return text.replace(b": 0}", b": " + NESTED + b"}")


def nesting(described: dict[str, Any]) -> dict[str, Any]:
    """The object with a place for `nested`."""
    return described | {"metadata": described["metadata"] | {"managedFields": [{"fieldsV1": 0}]}}


NONSENSE = (
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
            ("JSON deeper than can be read", DEEP + b"\n", ": Input data was truncated"),
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
        name="an object that is nested too deeply is read in an event",
        says=(Says(nested(event("MODIFIED", nesting(A_MOVED))), seconds=300),),
        then="watch 11",
        shows={"a": "n3", "b": "n2"},
    ),
    Row(
        name="an object that is nested too deeply is read in a page",
        before=NO_STREAMS,
        says=(Says(nested(pages(nesting(A), B).body)),),
    ),
    Row(
        name="an object that can be read again is back",
        before=(*WATCHING, Says(event("MODIFIED", ODD), seconds=300)),
        says=(Says(event("MODIFIED", manager("b", 13, "n2")), seconds=300),),
        then="watch 13",
    ),
)


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("row", [*ROWS, *NONSENSE], ids=lambda row: row.name)
def test_refusal(row: Row, cut: Cut) -> None:
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
