"""Starts a program, also where its packages are missing. Only the standard library is imported here."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


def run(module: str) -> NoReturn:
    """Run `main` of a module and exit with its exit code; with 2 and one sentence if this Python can't import it.

    SIGINT (Ctrl-C) ends the process at once, as it ends programs in C or Go: during an import, too, and without a word.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a job in the background begins with it ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        main = importlib.import_module(module).main
    except (ImportError, TypeError, AttributeError) as error:  # a package is missing, or too old for this program
        sys.stderr.write(
            f"Error: {sys.executable} lacks a package of this program, or has an old one: {error}; expected those of "
            "requirements.lock; run `make venv`, and take .venv/bin/python\n"
        )
        sys.exit(2)
    sys.exit(main())


@contextmanager
def interrupts_raised() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt in this block, which has files to remove; the block runs no event loop."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
