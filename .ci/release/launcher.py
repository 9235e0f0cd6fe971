"""The program kubectl-coschedule of an archive: a shell script that finds a Python for the packages beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

NAME: Final = "kubectl-coschedule"
PACKAGES: Final = "packages"  # the folder beside it

# The probe asks for one compiled file by its full name, which tells the version of Python, its kind and its platform.
# -I: no module of the user's folder or environment is imported instead of ours.
_SCRIPT: Final = """\
#!/bin/sh
# Runs kubevirt-coschedule as `kubectl coschedule`, by the first Python that can load the packages beside this file.
for python in {names} python3; do
    if "$python" -I -c '
import _imp, os, sys
packages = os.path.join(os.path.dirname(os.path.realpath(sys.argv[1])), "{packages}")
sys.exit(not os.path.exists(packages + "/msgspec/_core" + _imp.extension_suffixes()[0]))' "$0" 2>/dev/null
    then
        exec "$python" -I -c '
import os, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), "{packages}"))
from webhook.component_base.start import run
run("webhook.cli")' "$0" "$@"
    fi
done
found=$(python3 --version 2>&1) || found="no python3"
echo "error: found $found; expected {versions}, of CPython for {platform}, on the PATH; install one" >&2
exit 2
"""


def launcher(platform: str, minors: Sequence[str]) -> str:
    """The text of the script, for packages that these versions of Python can load."""
    *older, newest = minors
    return _SCRIPT.format(
        names=" ".join(f"python{each}" for each in reversed(minors)),
        packages=PACKAGES,
        versions=f"Python {', '.join(older)} or {newest}",
        platform=platform,
    )
