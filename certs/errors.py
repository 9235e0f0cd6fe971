"""UserError: what a user can mend. The command line prints its sentences and exits with 2; nothing else is."""

from __future__ import annotations


class UserError(Exception):
    """One or several problems, each one sentence: what, got, expected, what to do next."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))
