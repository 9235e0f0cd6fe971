"""TerminalRunner: Ctrl-C never falls into the middle of a callback of the event loop."""

import asyncio
import os
import signal
from typing import NoReturn

import pytest

from webhook.component_base.runner import TerminalRunner


async def _interrupted_in_a_callback(seen: list[bool]) -> None:
    """Wait for a future whose callback is interrupted after it has looked whether the future is pending."""
    future = asyncio.get_running_loop().create_future()

    def callback() -> None:
        assert not future.done()
        os.kill(os.getpid(), signal.SIGINT)
        seen.append(future.done())
        future.set_result(None)

    asyncio.get_running_loop().call_soon(callback)
    await future


async def _sleeps() -> None:
    await asyncio.sleep(60)


def test_a_callback_runs_to_its_end_before_the_interrupt() -> None:
    """With asyncio.Runner the future is cancelled in the middle of the callback: InvalidStateError."""
    seen: list[bool] = []
    with TerminalRunner() as runner, pytest.raises(KeyboardInterrupt):
        runner.run(_interrupted_in_a_callback(seen))
    assert seen == [False]


def test_the_runner_can_be_used_after_an_interrupt_and_leaves_no_handler() -> None:
    """As `connect_for_terminal` does, to close its client."""

    async def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await _sleeps()

    async def answer() -> int:
        return 42

    with TerminalRunner() as runner:
        with pytest.raises(KeyboardInterrupt):
            runner.run(interrupted())
        assert runner.run(answer()) == 42
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_ends_a_command_that_cleans_up() -> None:
    """The first one cancels; the clean-up may wait for a server that is silent."""
    ended = []

    async def cleans_up_for_long() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await _sleeps()
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            await _sleeps()
            ended.append(True)

    with TerminalRunner() as runner, pytest.raises(KeyboardInterrupt):
        runner.run(cleans_up_for_long())
    assert not ended


def test_what_the_command_cancels_itself_is_no_interrupt() -> None:
    """A CancelledError without Ctrl-C stays one."""

    async def cancelled() -> NoReturn:
        raise asyncio.CancelledError

    with TerminalRunner() as runner, pytest.raises(asyncio.CancelledError):
        runner.run(cancelled())
