"""The program `python -m certs`: its commands keep and issue, what their help says, and what runs them.

A command imports what it needs when it runs, so that help, errors and completion come at once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Final

import click

from certs.settings import ENVIRONMENT_PREFIX, ControllerSettings, IssueSettings
from webhook.component_base import command_line
from webhook.component_base.errors import UserError

PROGRAM: Final = "python -m certs"
EXECUTABLE: Final = "kubevirt-coschedule-certs"
COMMANDS: Final = command_line.program(
    PROGRAM,
    executable=EXECUTABLE,
    description="Looks after the webhook's certificate: the Secret that the webhook's pods mount, and the caBundle by "
    "which API servers trust the webhook.",
)
_command: Final = partial(command_line.command, COMMANDS, prefix=ENVIRONMENT_PREFIX)


@_command(
    settings=ControllerSettings,
    examples=f"""\
# The manifests run this (manifests/install.yaml)
{PROGRAM} keep

# From a laptop, for the cluster of a kubeconfig's context
{PROGRAM} keep --context staging --listen 127.0.0.1:8080""",
    exit_codes="0 after SIGTERM or SIGINT, 2 for a setting, kubeconfig or address that can't be used. The "
    "certificate controller waits for what can still appear, an API server for example.",
)
def keep(settings: ControllerSettings) -> int:
    """Keep the webhook's certificate until stopped.

    Issue the certificate, renew it before it expires, and publish its authority in caBundle.
    """
    from certs import run  # noqa: PLC0415 - the API client takes a second to import

    return run.run(settings)


@_command(
    settings=IssueSettings,
    examples=f"{PROGRAM} issue --dir ./tls --name localhost --name 127.0.0.1",
    exit_codes="0 when the files are written, 2 for bad input.",
)
def issue(settings: IssueSettings) -> int:
    """Write a key, a certificate and its authority.

    They are for a laptop or a test.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 - see the module

    from certs import pki  # noqa: PLC0415 - see the module

    directory, names = settings.dir, settings.name
    try:
        now, lifetime = datetime.now(UTC), settings.lifetime
        pair = pki.issue(pki.new_authority(now=now, lifetime=lifetime), names, now=now, lifetime=lifetime)
    except ValueError as error:
        raise UserError(f"--name: got {', '.join(names)}, expected DNS names and addresses: {error}") from None
    files = (("tls.key", pair.key, 0o600), ("tls.crt", pair.certificate, 0o644), ("ca.crt", pair.authority, 0o644))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content, mode in files:
            (directory / name).unlink(missing_ok=True)
            with os.fdopen(os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)
    except OSError as error:
        raise UserError(
            f"{error.filename or directory}: {error.strerror}; choose another directory with --dir"
        ) from None
    click.echo(f"{directory}: tls.crt for {', '.join(names)}, its tls.key, and ca.crt that verifies it")
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit code: 0, 1 where a command documents it, 2 for bad input."""
    return command_line.main(COMMANDS, EXECUTABLE, words)
