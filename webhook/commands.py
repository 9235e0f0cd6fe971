"""What runs each command of the program, with the values of its options.

A command imports what it needs when it runs, so that help, errors and completion come at once.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from webhook.app.settings import ServeSettings
from webhook.bundle.settings import BundleSettings
from webhook.candidates.settings import CandidatesSettings
from webhook.explain.settings import ExplainSettings
from webhook.reunite.settings import ReuniteSettings
from webhook.status.settings import StatusSettings


def run_serve(**values: Any) -> int:
    """Run the admission webhook. Returns the exit code."""
    settings = ServeSettings(**values)
    from webhook.app import run as app  # noqa: PLC0415 - aiohttp is for serving only

    return app.serve(settings)


def run_explain(**values: Any) -> int:
    """Show what is decided for objects, and why. Returns the exit code."""
    settings = ExplainSettings(**values)
    from webhook.explain import run  # noqa: PLC0415 - see the module

    return run.run(settings, stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr, color=_color())


def run_status(**values: Any) -> int:
    """Show which VMs are with their share-manager. Returns the exit code."""
    settings = StatusSettings(**values)
    from webhook.status import run  # noqa: PLC0415 - see the module

    return run.run(settings, stdout=sys.stdout, stderr=sys.stderr, color=_color())


def run_bundle(**values: Any) -> int:
    """Write a file of the cluster. Returns the exit code."""
    settings = BundleSettings(**values)
    from webhook.bundle import run  # noqa: PLC0415 - see the module

    return run.run(settings, stdout=sys.stdout, stderr=sys.stderr)


def run_candidates(**values: Any) -> int:
    """Show which VMs would gain. Returns the exit code."""
    settings = CandidatesSettings(**values)
    from webhook.candidates import run  # noqa: PLC0415 - see the module

    return run.run(settings, stdout=sys.stdout, stderr=sys.stderr)


def run_reunite(**values: Any) -> int:
    """Migrate VMs that are apart. Returns the exit code."""
    settings = ReuniteSettings(**values)
    from webhook.reunite import run  # noqa: PLC0415 - see the module

    return run.run(settings, stdout=sys.stdout)


def run_demo() -> int:
    """Serve the example cluster for a moment. Returns the exit code."""
    from webhook.demo import run  # noqa: PLC0415 - see the module

    return run.run(sys.stdout, color=_color())


def _color() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
