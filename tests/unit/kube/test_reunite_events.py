"""The messages of `reunite` for the page: read while somebody asks, and not again at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from webhook.core.observe.events import Messages
from webhook.kube.events import ReuniteMessages

SAID = {("vms", "db01"): "comes home"}


def counting(answer: Messages | None, asked: list[int]) -> Callable[[], asyncio.Future[Messages | None]]:
    """A read that answers at once, and notes each time that it was asked."""

    def read() -> asyncio.Future[Messages | None]:
        asked.append(1)
        future: asyncio.Future[Messages | None] = asyncio.get_running_loop().create_future()
        future.set_result(answer)
        return future

    return read


async def read_once(messages: ReuniteMessages) -> None:
    """Wait until the read that is under way has ended."""
    assert messages._reading is not None
    await messages._reading


@pytest.mark.parametrize(("answer", "shown"), [(SAID, SAID), ({}, {}), (None, {})], ids=["messages", "none", "refused"])
async def test_what_was_read_is_shown_and_not_read_again_at_once(answer: Messages | None, shown: Messages) -> None:
    """The first question starts the read and does not wait for the answer."""
    asked: list[int] = []
    messages = ReuniteMessages(counting(answer, asked))
    assert messages() == {}
    await read_once(messages)
    assert messages() == shown
    assert messages() == shown
    assert len(asked) == 1


async def test_a_read_that_fails_is_tried_again() -> None:
    """An error of one read does not end the messages for good."""
    asked: list[int] = []

    async def read() -> Messages | None:
        asked.append(1)
        if len(asked) == 1:
            raise RuntimeError("once")
        return SAID

    messages = ReuniteMessages(read)
    messages()
    with pytest.raises(RuntimeError):
        await read_once(messages)
    messages()
    await read_once(messages)
    assert messages() == SAID
