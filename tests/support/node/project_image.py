"""The project's image, built by `make image` with buildah, without a daemon, on a base of Debian's packages.

The base stands for the Python image of the Dockerfile: it has the same Python, and no bytecode of the standard library.
The base is made once, and stays in the cache beside the layers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from controlplane.build import CACHE
from support.control_plane.rendering import ROOT, at, the

NEEDED: Final = ("buildah", "mmdebstrap")
"""Programs of Debian's packages that this needs."""
BASE: Final = "localhost/python-of-debian:2"

_STORAGE: Final = CACHE / "images"
_SUITE: Final = "trixie"  # its Python is that of the Dockerfile, 3.13
_PACKAGES: Final = "python3,python3-pip,ca-certificates"
_TRUSTED: Final = "/etc/ssl/certs/ca-certificates.crt"  # this machine's: a proxy that ends TLS may be between
_HOOKS: Final = (
    'ln -s python3 "$1/usr/bin/python"',
    f'cp {_TRUSTED} "$1{_TRUSTED}"',
    'find "$1/usr/lib" -name __pycache__ -prune -exec rm -r {} +',
)


def name() -> str:
    """What the manifests call the image."""
    return str(at("spec.template.spec.containers.0.image", the("Deployment")))


def build(checkout: Path = ROOT, *words: str) -> None:
    """Build the image of a checkout, with these words for `make image` besides.

    Raises:
        NotBuilt: there is no kubectl to render the manifests.
        AssertionError: the image can't be built; the message has the end of what the builder said.
    """
    _STORAGE.mkdir(parents=True, exist_ok=True)
    _conf().write_text(f'[storage]\ndriver = "overlay"\ngraphroot = "{_STORAGE}/root"\nrunroot = "{_STORAGE}/run"\n')
    if run(["buildah", "inspect", "--type=image", BASE]).returncode:
        _make_base()
    sys.stderr.write("Building the image\n")
    named = ["BUILDER=buildah", f"PYTHON_IMAGE={BASE}", f"IMAGE={name()}"]
    done(run(["make", "-C", str(checkout), "image", *named, *words]))


def archive(file: Path) -> Path:
    """Write the image that was built to a docker-archive, under the name that the manifests have for it."""
    done(run(["buildah", "push", name(), f"docker-archive:{file}:{name()}"]))
    return file


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command with the images of the cache, without a daemon and without a runtime."""
    environment = {**os.environ, "CONTAINERS_STORAGE_CONF": str(_conf()), "BUILDAH_ISOLATION": "chroot"}
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment)  # noqa: S603 - our own words


def done(process: subprocess.CompletedProcess[str]) -> str:
    """Return what a command that must not fail has printed."""
    said = process.stderr[-2000:]
    assert process.returncode == 0, f"{' '.join(process.args)}: {said}"
    return process.stdout


def _conf() -> Path:
    return _STORAGE / "storage.conf"


def _make_base() -> None:
    sys.stderr.write("Making the image's base from packages of Debian, once\n")
    with tempfile.TemporaryDirectory() as directory:
        root = f"{directory}/root.tar"
        hooks = [f"--customize-hook={hook}" for hook in _HOOKS]
        done(run(["mmdebstrap", "--variant=minbase", f"--include={_PACKAGES}", *hooks, _SUITE, root]))
        container = done(run(["buildah", "from", "scratch"])).strip()
        done(run(["buildah", "add", "--quiet", container, root, "/"]))
        done(run(["buildah", "commit", "--rm", container, BASE]))
