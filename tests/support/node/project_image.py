"""The project's image, built from its Dockerfile as it is, by buildah without a daemon, on a base of Debian's packages.

The base stands for the Python image of the Dockerfile. It is made once, and stays in the cache beside the layers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from controlplane.build import CACHE
from support.control_plane.rendering import ROOT, at, the

NEEDED: Final = ("buildah", "mmdebstrap")
"""Programs of Debian's packages that this needs."""

_STORAGE: Final = CACHE / "images"
_BASE: Final = "localhost/python-of-debian:1"
_SUITE: Final = "bookworm"
_PACKAGES: Final = "python3,python3-pip,ca-certificates"
_TRUSTED: Final = "/etc/ssl/certs/ca-certificates.crt"  # this machine's: a proxy that ends TLS may be between
_CHROOT: Final = {"BUILDAH_ISOLATION": "chroot"}  # no daemon, no runtime


def build(archive: Path) -> Path:
    """Write the image to the file `archive` as a docker-archive, under the name that the manifests have for it.

    Raises:
        NotBuilt: there is no kubectl to render the manifests.
        AssertionError: it can't be built; the message has the end of what the builder said.
    """
    name = at("spec.template.spec.containers.0.image", the("Deployment"))
    if _buildah("inspect", "--type=image", _BASE).returncode:
        _make_base()
    sys.stderr.write("Building the image\n")
    _done(
        _buildah("build", "--layers", "--pull-never", f"--build-arg=PYTHON_IMAGE={_BASE}", f"--tag={name}", str(ROOT))
    )
    _done(_buildah("push", name, f"docker-archive:{archive}:{name}"))
    return archive


def _make_base() -> None:
    sys.stderr.write("Making the image's base from packages of Debian; once, and it takes some minutes\n")
    with tempfile.TemporaryDirectory() as directory:
        root = f"{directory}/root.tar"
        hooks = ['ln -s python3 "$1/usr/bin/python"', f'cp {_TRUSTED} "$1{_TRUSTED}"']
        words = [f"--customize-hook={hook}" for hook in hooks]
        _done(_run(["mmdebstrap", "--variant=minbase", f"--include={_PACKAGES}", *words, _SUITE, root], {}))
        container = _done(_buildah("from", "scratch")).strip()
        _done(_buildah("add", "--quiet", container, root, "/"))
        _done(_buildah("commit", "--rm", container, _BASE))


def _buildah(*words: str) -> subprocess.CompletedProcess[str]:
    places = [f"--root={_STORAGE / 'root'}", f"--runroot={_STORAGE / 'run'}", "--storage-driver=overlay"]
    return _run(["buildah", *places, *words], _CHROOT)


def _run(words: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    merged = {**os.environ, **environment}
    return subprocess.run(words, capture_output=True, text=True, check=False, env=merged)  # noqa: S603 - our own words


def _done(process: subprocess.CompletedProcess[str]) -> str:
    said = process.stderr[-2000:]
    assert process.returncode == 0, f"{' '.join(process.args)}: {said}"
    return process.stdout
