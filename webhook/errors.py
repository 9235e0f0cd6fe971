"""UserError: what a user can mend. The command line prints its sentences and exits with 2; nothing else is."""

from __future__ import annotations

from typing import Final

_MAX_PROBLEMS_SHOWN: Final = 20


class UserError(Exception):
    """One or several problems, each one sentence: what, got, expected, what to do next."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        more = len(problems) - _MAX_PROBLEMS_SHOWN
        shown = problems[:_MAX_PROBLEMS_SHOWN] + ((f"and {more} more",) if more > 0 else ())
        super().__init__("\n".join(shown))
