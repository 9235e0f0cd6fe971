"""`make image-test`: the tests of this folder, on the image that they build. Needs root."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from controlplane.build import CACHE
from support.image import containers
from support.image.containers import ASKED
from support.node import project_image

HERE: Final = Path(__file__).resolve().parent
PACKAGES: Final = "buildah mmdebstrap runc"


def main() -> int:
    """Run pytest with the arguments of the command line, as in CI: a skipped test is a failed one.

    Returns pytest's exit code, and 2 where it can't run here.
    """
    if os.geteuid():
        return _refused("got an ordinary user, expected root: buildah and runc make mounts and namespaces")
    needed = (*project_image.NEEDED, *containers.NEEDED)
    if missing := [name for name in needed if shutil.which(name) is None]:
        return _refused(f"not on the path: {', '.join(missing)}; on Debian: apt-get install {PACKAGES}")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "image-test.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        words = [sys.executable, "-m", "pytest", "-q", str(HERE), *sys.argv[1:]]
        return subprocess.run(words, check=False, env={**os.environ, ASKED: "1", "CI": "1"}).returncode  # noqa: S603 - pytest


def _refused(sentence: str) -> int:
    sys.stderr.write(f"error: {sentence}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
