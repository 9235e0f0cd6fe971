"""Both programs as processes, for tests of what both command lines do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from support.drivers.serving import ROOT
from support.waits import MAX_WAIT_SECONDS

EXAMPLES: Final = "manifests/examples/cluster"


def ended(
    command: Sequence[str], stdout: int = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A process of one of the programs, after its end."""
    return subprocess.run(  # noqa: S603 - our own programs, words of our own
        command,
        cwd=ROOT,
        env=os.environ | environment,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=MAX_WAIT_SECONDS,
    )


class Program(NamedTuple):
    """A program: how it is started, the name that shells know it by, and words that it takes."""

    module: str
    executable: str
    prints: str  # a command that prints a few lines, without a cluster; {} is a directory
    misspelled: str

    def run(self, *words: str, stdout: int = subprocess.PIPE, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return ended([sys.executable, "-m", self.module, *words], stdout, **environment)


WEBHOOK: Final = Program("webhook", "kubevirt-coschedule", f"status web01 -n prod-vms --manifests {EXAMPLES}", "statsu")
CERTS: Final = Program("certs", "kubevirt-coschedule-certs", "issue --dir {}", "issu")
