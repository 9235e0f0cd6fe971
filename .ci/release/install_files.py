"""Each install of manifests/ as one file for `kubectl apply -f`, rendered by the kustomize that is in kubectl."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from checkout import NAME, ROOT, VERSION, output_of
from controlplane import build
from image import Image

INSTALLS: Final = {"install.yaml": ".", "install-cert-manager.yaml": "overlays/cert-manager"}
"""The name of each file, and its folder in manifests/."""


def install_files(image: Image) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each file.

    Raises:
        NotBuilt: there is no kubectl; the message says what to do.
        ReleaseError: an install does not render.
    """
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        for part in ("manifests", f"charts/{NAME}/files"):
            shutil.copytree(ROOT / part, directory / part)
        for name, folder in INSTALLS.items():
            kustomization = {
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
                "resources": [str(Path("manifests", folder))],
                "images": [{"name": NAME, "newName": image.repository, **_pinned(image)}],
            }
            (directory / "kustomization.yaml").write_text(json.dumps(kustomization), encoding="utf-8")
            objects = output_of(build.kubectl(), "kustomize", directory)
            yield name, f"# {NAME} {VERSION}: kubectl apply -f {name}\n{objects}".encode()


def _pinned(image: Image) -> dict[str, str]:
    return {"digest": image.digest} if image.digest else {"newTag": VERSION}
