"""The requests of a ListWatch, and the limits of what it reads."""

from __future__ import annotations

import pytest
from support.fakes.watching import BOTH, NO_STREAMS, RESOURCES, WATCHING, A, B, Driver, Says, pages, refuses
from support.models.model_api import bookmark, refusal

from webhook.core.view import Kind
from webhook.kube import wire
from webhook.kube.informer import connection

MIB = 1024 * 1024


def test_a_streaming_list_asks_for_the_latest_state_and_bookmarks() -> None:
    """Without a resourceVersion the list is the latest one. Bookmarks tell a quiet watch from a dead one."""
    request = Driver().ask()
    assert dict(request.query) == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "450",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
    assert request.silence_seconds == connection.SILENCE_SECONDS


@pytest.mark.parametrize("before", [(), NO_STREAMS, WATCHING], ids=["list", "page", "watch"])
def test_the_selector_is_in_every_request(before: tuple[Says, ...]) -> None:
    """Of pods only those of share-managers are listed and watched."""
    driver = Driver(resource=RESOURCES[Kind.SHARE_MANAGER_POD])
    for says in before:
        driver.ask()
        driver.machine.opened(says.status, None, driver.now)
        driver.machine.feed(says.body.replace(b'"status": {', b'"other": {'), driver.now)
        driver.now += says.seconds
        driver.machine.ended(driver.now)
    assert ("labelSelector", "longhorn.io/component=share-manager") in driver.ask().query


def test_a_list_that_expires_asks_for_larger_pages_until_it_is_whole() -> None:
    """Fewer pages take less time. Each expired token doubles the page size up to a limit; a whole list resets it."""
    driver = Driver()
    driver.play(*NO_STREAMS)
    sizes = []
    for _ in range(6):
        sizes.append(dict(driver.ask().query)["limit"])
        driver.hear(pages(A, continue_="t2"))
        driver.play(refuses(refusal(410, "Expired")))
    assert sizes == ["500", "1000", "2000", "4000", "8000", "8000"]
    driver.play(pages(A, B), refuses(refusal(410, "Expired")))
    assert dict(driver.ask().query)["limit"] == "500"


def in_pieces(driver: Driver, body: bytes, size: int = 64 * 1024) -> bool:
    """Feed the body in pieces; whether all of it was wanted."""
    return all(driver.machine.feed(body[i : i + size], driver.now) for i in range(0, len(body), size))


@pytest.mark.parametrize("size", [64 * 1024, 64 * MIB], ids=["in pieces", "whole"])
@pytest.mark.parametrize("tail", [b"", b"\n"], ids=["without an end", "with its end"])
@pytest.mark.parametrize(("length", "taken"), [(16 * MIB - 1, True), (16 * MIB + 1, False)], ids=["just", "too long"])
def test_a_line_over_16_mib_is_given_up(size: int, tail: bytes, length: int, taken: bool) -> None:  # noqa: FBT001 - a row's
    """A watch with an event of more than 16 MiB ends, in pieces of any size."""
    driver = Driver()
    driver.play(*WATCHING)
    driver.ask()
    driver.machine.opened(200, None, driver.now)
    line = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"11"}},"x":"'
    assert in_pieces(driver, bookmark(11) + line.ljust(length - 2, b"x") + b'"}' + tail, size) is taken
    driver.machine.ended(driver.now, "" if not taken else "reset")
    assert driver.machine.problem == ("cut: reset" if taken else "garbage: an event of more than 16777216 bytes")
    assert driver.shown == BOTH


def test_a_page_over_the_limit_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is too long fails at the limit, and fewer objects are asked for: one at least."""
    monkeypatch.setattr(wire, "_PAGE_MAX_BYTES", 1000)
    driver = Driver()
    driver.play(*NO_STREAMS)
    driver.ask()
    driver.machine.opened(200, None, driver.now)
    assert in_pieces(driver, b" " * 1000, 100)
    assert not in_pieces(driver, b" ")
    driver.machine.ended(driver.now)
    assert driver.machine.problem == "garbage: a list of more than 1000 bytes"
    driver.play(pages(A, continue_="t2"), *[Says(b" " * 1001)] * 8)
    assert driver.asked[-9:] == ["page", *["page t2"] * 8]
    assert dict(driver.ask().query)["limit"] == "1"
    driver.hear(pages(B))
    assert driver.shown == BOTH


def test_only_the_start_of_an_error_is_stored() -> None:
    """The machine reads an error without an end, and stores its first 64 KiB."""
    driver = Driver()
    driver.ask()
    driver.machine.opened(502, None, driver.now)
    assert in_pieces(driver, b"<html>" + b"x" * MIB)
    assert len(driver.machine._framing.body) == 64 * 1024
