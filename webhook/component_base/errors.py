"""Errors that a user can repair: the command line prints the sentences of these errors only, and exits with 2.

A sentence can have names and words of others. `printable` replaces control characters, so that none reaches the
terminal, and characters that would turn the text around.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click

_MAX_PROBLEMS_SHOWN: Final = 20
_TURNING: Final = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))  # Unicode's bidi controls
_CONTROL: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *_TURNING)}


def printable(text: str) -> str:
    r"""Return the text with control characters, line breaks and what turns text around as escapes such as `\x1b`."""
    return text if text.isprintable() else text.translate(_CONTROL)


class UserError(click.ClickException):
    """One or several problems, each one sentence: what, got, expected, what to do next."""

    exit_code = 2

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        more = len(problems) - _MAX_PROBLEMS_SHOWN
        shown = problems[:_MAX_PROBLEMS_SHOWN] + ((f"and {more} more",) if more > 0 else ())
        super().__init__("\n".join(map(printable, shown)))


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return the word that the user may have meant, as the end of a message; empty if none is near, or it is known."""
    from difflib import get_close_matches  # noqa: PLC0415 - for mistakes only

    known = list(words)
    near = [] if word in known else get_close_matches(word, known, n=1)
    return "".join(f"; did you mean {each}?" for each in near)
