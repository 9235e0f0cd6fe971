"""The messages of `reunite` for the page: read while somebody asks, and not again at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from webhook.component_base.client.api import Api, Reply
from webhook.component_base.client.transport import ApiError
from webhook.core.observe.events import Messages
from webhook.kube.events import ReuniteMessages, read_messages

SAID = {("vms", "db01"): "comes home"}


def counting(answer: Messages | ApiError, asked: list[int]) -> Callable[[], asyncio.Future[Messages]]:
    """A read that answers at once, and notes each time that it was asked."""

    def read() -> asyncio.Future[Messages]:
        asked.append(1)
        future: asyncio.Future[Messages] = asyncio.get_running_loop().create_future()
        if isinstance(answer, ApiError):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        return future

    return read


async def read_once(messages: ReuniteMessages) -> None:
    """Wait until the read that is under way has ended."""
    assert messages._reading is not None
    await messages._reading


@pytest.mark.parametrize(
    ("answer", "shown"),
    [(SAID, SAID), ({}, {}), (ApiError("403", forbidden=True), {})],
    ids=["messages", "none", "refused"],
)
async def test_what_was_read_is_shown_and_not_read_again_at_once(answer: Messages | ApiError, shown: Messages) -> None:
    """The first question starts the read and does not wait for the answer."""
    asked: list[int] = []
    messages = ReuniteMessages(counting(answer, asked))
    assert messages() == {}
    await read_once(messages)
    assert messages() == shown
    assert messages() == shown
    assert len(asked) == 1


async def test_messages_outlive_reads_that_fail() -> None:
    """For a moment the API server does not answer: that does not hide for ten minutes what `reunite` said."""
    forbidden = ApiError("403", forbidden=True)
    messages = ReuniteMessages(counting(SAID, []))
    for answer, shown, seconds in ((SAID, SAID, 30), (ApiError("no answer"), SAID, 30), (forbidden, {}, 600)):
        messages._read, messages._next = counting(answer, []), 0.0
        messages()
        await read_once(messages)
        assert messages() == shown
        assert messages._next == pytest.approx(asyncio.get_running_loop().time() + seconds, abs=5)


class _Answering:
    def __init__(self, status: int) -> None:
        self.status = status

    async def get(self, *_: object, **__: object) -> Reply:
        """Answer with the status."""
        return Reply(self.status, b"{}")


@pytest.mark.parametrize(("status", "forbidden"), [(403, True), (429, False)])
async def test_only_a_refusal_says_that_there_are_no_messages(*, status: int, forbidden: bool) -> None:
    """Without the component `reunite` the account may not list Events. Any other failure passes."""
    with pytest.raises(ApiError) as caught:
        await read_messages(cast("Api", _Answering(status)), "")
    assert caught.value.forbidden is forbidden


async def test_a_read_that_fails_is_tried_again() -> None:
    """An error of one read does not end the messages for good."""
    asked: list[int] = []

    async def read() -> Messages:
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
