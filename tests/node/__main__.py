"""`make node-test`: the tests of this folder, on nodes with real kubelets, in namespaces of their own. Needs root."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Final

from controlplane.build import CACHE
from support.node import namespaces, project_image
from support.node.network import DIRECTORY, IMAGE, NODES

HERE: Final = Path(__file__).resolve().parent
FILES: Final = Path(tempfile.gettempdir()) / "kubevirt-coschedule-nodes"
"""Where everything of the cluster goes: one name, so that the next run removes what a killed one has left."""
PACKAGES: Final = (
    "buildah containerd runc containernetworking-plugins iptables conntrack iproute2 util-linux mmdebstrap"
)


def main() -> int:
    """Run pytest with the arguments of the command line, as in CI: a skipped test is a failed one.

    Returns pytest's exit code, and 2 where it can't run here.
    """
    if os.geteuid():
        return _refused("got an ordinary user, expected root: kubelets make mounts, networks and control groups")
    if missing := [name for name in (*namespaces.NEEDED, *project_image.NEEDED) if shutil.which(name) is None]:
        return _refused(f"not on the path: {', '.join(missing)}; on Debian: apt-get install {PACKAGES}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what follows is cleared away
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "node-test.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(FILES, ignore_errors=True)
        FILES.mkdir()
        try:
            project_image.build()
            project_image.archive(FILES / IMAGE)
            with namespaces.cgroups(NODES):
                words = [sys.executable, "-m", "pytest", "-q", str(HERE), *sys.argv[1:]]
                return namespaces.run_alone(words, {**os.environ, DIRECTORY: str(FILES), "CI": "1"})
        finally:
            shutil.rmtree(FILES)


def _refused(sentence: str) -> int:
    sys.stderr.write(f"error: {sentence}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
