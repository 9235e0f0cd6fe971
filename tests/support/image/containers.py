"""Containers of the image that was built, run by runc as the manifests have them run: uid 65532, a read-only root, no
capabilities and no new privileges. They share the network of the host, and read one folder of the tests.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from support.control_plane.rendering import NAME, at, the
from support.node import project_image
from support.node.project_image import done, run
from support.waits import MAX_WAIT_SECONDS

NEEDED: Final = ("runc",)
"""Programs of Debian's packages that this needs."""

_PROC: Final = {"destination": "/proc", "type": "proc", "source": "proc"}
_DEVICES: Final = {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]}
_SHARED_MEMORY: Final = {
    "destination": "/dev/shm",  # noqa: S108 - as a kubelet mounts it
    "type": "tmpfs",
    "source": "shm",
    "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"],
}
_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_NAMESPACES: Final = ("pid", "ipc", "uts", "mount")


class Containers:
    """What runs from one mounted copy of the image. `directory` has files of ours; the containers can read `shared`."""

    def __init__(self, root: Path, directory: Path, shared: Path) -> None:
        self._root, self._directory, self._shared = root, directory, shared
        self._config: dict[str, Any] = json.loads(done(run(["buildah", "inspect", project_image.name()])))["OCIv1"][
            "config"
        ]
        self._started = 0

    @property
    def entrypoint(self) -> list[str]:
        """What the image runs by itself."""
        return list(self._config["Entrypoint"])

    def command(self, words: Sequence[str], kubeconfig: Path | None = None) -> list[str]:
        """The command line that runs a container with these words as its program, in the foreground.

        The container finds the API server and the user of `kubeconfig` as a pod finds its service account.
        """
        self._started += 1
        bundle = self._directory / f"container-{self._started}"
        bundle.mkdir()
        (bundle / "config.json").write_text(json.dumps(self._spec(words, kubeconfig)), encoding="utf-8")
        return [*self._runc(), "run", "--bundle", str(bundle), bundle.name]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the image to its end."""
        command = self.command(words)
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=MAX_WAIT_SECONDS)  # noqa: S603 - our own words

    def remove(self) -> None:
        """End every container."""
        listed = subprocess.run([*self._runc(), "list", "--quiet"], capture_output=True, text=True, check=True)  # noqa: S603 - runc
        for name in listed.stdout.split():
            subprocess.run([*self._runc(), "delete", "--force", name], capture_output=True, check=True)  # noqa: S603 - as above

    def _runc(self) -> list[str]:
        return ["runc", "--root", str(self._directory / "runc")]

    def _account(self, kubeconfig: Path) -> tuple[list[str], dict[str, Any]]:
        """The environment and the mount that a kubelet gives a pod with a service account."""
        content = json.loads(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        files = self._shared / f"account-{self._started}"
        files.mkdir()
        (files / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        (files / "token").write_text(user["token"], encoding="utf-8")
        (files / "namespace").write_text(NAME, encoding="utf-8")
        server = urlsplit(cluster["server"])
        environment = [f"KUBERNETES_SERVICE_HOST={server.hostname}", f"KUBERNETES_SERVICE_PORT={server.port}"]
        return environment, _bound(files, _ACCOUNT)

    def _spec(self, words: Sequence[str], kubeconfig: Path | None) -> dict[str, Any]:
        security = at("spec.template.spec.securityContext", the("Deployment"))
        uid, gid = self._config["User"].split(":")
        assert (int(uid), int(gid)) == (security["runAsUser"], security["runAsGroup"])
        environment, mounts = list(self._config["Env"]), [_bound(self._shared, str(self._shared))]
        if kubeconfig:
            more, mount = self._account(kubeconfig)
            environment += more
            mounts.append(mount)
        return {
            "ociVersion": "1.0.2",
            "process": {
                "args": list(words),
                "cwd": self._config["WorkingDir"],
                "env": environment,
                "user": {"uid": int(uid), "gid": int(gid)},
                "capabilities": {},
                "noNewPrivileges": True,
            },
            "root": {"path": str(self._root), "readonly": True},
            "mounts": [_PROC, _DEVICES, _SHARED_MEMORY, *mounts],
            "linux": {"namespaces": [{"type": each} for each in _NAMESPACES]},
        }


def _bound(source: Path, destination: str) -> dict[str, Any]:
    return {"destination": destination, "source": str(source), "type": "bind", "options": ["rbind", "ro"]}


@contextmanager
def containers(directory: Path, shared: Path) -> Iterator[Containers]:
    """Containers of the image, until the block ends."""
    name = done(run(["buildah", "from", "--pull-never", project_image.name()])).strip()
    try:
        root = Path(done(run(["buildah", "mount", name])).strip())
        made = Containers(root, directory, shared)
        try:
            yield made
        finally:
            made.remove()
    finally:
        done(run(["buildah", "rm", name]))


ASKED: Final = "IMAGE_TEST"  # no setting of the program: those are removed for all tests
"""The environment variable that `make image-test` sets."""
