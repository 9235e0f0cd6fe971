"""Starts a program by `python -m`, also where its packages are missing. Only the standard library is imported here."""

from __future__ import annotations

import importlib
import sys
from typing import NoReturn


def run(module: str) -> NoReturn:
    """Run `main` of a module and exit with its exit code; with 2 and one sentence if this Python can't import it."""
    try:
        main = importlib.import_module(module).main
    except (ImportError, TypeError, AttributeError) as error:  # a package is missing, or too old for this program
        sys.stderr.write(
            f"error: {sys.executable} lacks a package of this program, or has an old one: {error}; expected those of "
            "requirements.lock; run `make venv`, and take .venv/bin/python\n"
        )
        sys.exit(2)
    sys.exit(main())
