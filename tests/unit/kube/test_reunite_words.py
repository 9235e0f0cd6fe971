"""The words of `reunite` for the page: read while somebody asks, and not again at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from webhook.core.observe.last_words import Words
from webhook.kube.reunite_events import ReuniteWords

SAID = {("vms", "db01"): "comes home"}


def counting(answer: Words | None, asked: list[int]) -> Callable[[], asyncio.Future[Words | None]]:
    """A read that answers at once, and notes each time that it was asked."""

    def read() -> asyncio.Future[Words | None]:
        asked.append(1)
        future: asyncio.Future[Words | None] = asyncio.get_running_loop().create_future()
        future.set_result(answer)
        return future

    return read


async def read_once(words: ReuniteWords) -> None:
    """Wait until the read that is under way has ended."""
    assert words._reading is not None
    await words._reading


@pytest.mark.parametrize(("answer", "shown"), [(SAID, SAID), ({}, {}), (None, {})], ids=["words", "none", "refused"])
async def test_what_was_read_is_shown_and_not_read_again_at_once(answer: Words | None, shown: Words) -> None:
    """The first question starts the read and does not wait for the answer."""
    asked: list[int] = []
    words = ReuniteWords(counting(answer, asked))
    assert words() == {}
    await read_once(words)
    assert words() == shown
    assert words() == shown
    assert len(asked) == 1


async def test_a_read_that_fails_is_tried_again() -> None:
    """An error of one read does not end the words for good."""
    asked: list[int] = []

    async def read() -> Words | None:
        asked.append(1)
        if len(asked) == 1:
            raise RuntimeError("once")
        return SAID

    words = ReuniteWords(read)
    words()
    with pytest.raises(RuntimeError):
        await read_once(words)
    words()
    await read_once(words)
    assert words() == SAID
