"""The files of manifests/, rendered from the chart by helm: `make manifests` writes them there.

A release has the same files with its own image, and the whole folder for `kubectl apply -k`.
"""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from checkout import NAME, ROOT, VERSION, output_of
from controlplane import build
from image import Image, image

FOLDER: Final = ROOT / "manifests"
ARCHIVE: Final = f"{NAME}-manifests-{VERSION}.tgz"


def _only(component: str) -> tuple[str, str]:
    return (f"--set={component}.enabled=true", f"--show-only=templates/components/{component}/*.yaml")


FILES: Final[Mapping[str, Sequence[str]]] = {
    "install.yaml": (),
    "install-cert-manager.yaml": ("--set=certificates.issuer=cert-manager",),
    **{f"{component}.yaml": _only(component) for component in ("events", "monitoring", "reunite")},
}
"""The name of each file, and the words of `helm template` that make it."""


def install_files(image: Image) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each file.

    Raises:
        NotBuilt: there is no helm; the message says what to do.
        ReleaseError: the chart does not render.
    """
    newest = f"--kube-version={build.KUBERNETES[build.NEWEST].version}"
    values = (newest, f"--set=creator=static,image.repository={image.repository},image.digest={image.digest}")
    for name, words in FILES.items():
        with tempfile.TemporaryDirectory() as home:
            command = ("template", NAME, str(ROOT / "charts" / NAME), f"--namespace={NAME}", *values, *words)
            objects = output_of(build.helm(), *command, HOME=home)
        yield name, f"# From charts/{NAME} by `make manifests`: kubectl apply -f {name}\n{objects}".encode()


def folder(image: Image, seconds: int) -> bytes:
    """manifests/ as a tar archive, with the image in its kustomization; every file has this time."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for path in sorted(each for each in FOLDER.rglob("*") if each.is_file()):
            content = path.read_bytes()
            if path == FOLDER / "kustomization.yaml":
                named = image.repository + (f"\n    digest: {image.digest}" if image.digest else "")
                content = content.replace(f"newName: {NAME} ".encode(), f"newName: {named} ".encode())
            member = tarfile.TarInfo(path.relative_to(ROOT).as_posix())
            member.size, member.mtime = len(content), seconds
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(file.getvalue(), mtime=seconds)


if __name__ == "__main__":
    for name, content in install_files(image("", "")):
        Path(*sys.argv[1:2] or [str(FOLDER)], name).write_bytes(content)
