"""The Helm chart as one file, by `helm package`, with the image of the release in its values."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from checkout import NAME, ROOT, ReleaseError, output_of
from controlplane import build
from image import Image


def packed_chart(image: Image) -> tuple[str, bytes]:
    """(name, content) of the packed chart. helm 3 writes the time of the call into it, so no two archives are equal.

    Raises:
        NotBuilt: there is no helm; the message says what to do.
        ReleaseError: helm refuses the chart, or its values have no place for the image.
    """
    with tempfile.TemporaryDirectory() as temporary:
        chart = shutil.copytree(ROOT / "charts" / NAME, Path(temporary, NAME))
        values = chart / "values.yaml"
        values.write_text(with_image(values.read_text(encoding="utf-8"), image), encoding="utf-8")
        output_of(build.helm(), "package", chart, "--destination", temporary, HOME=temporary)
        (archive,) = Path(temporary).glob("*.tgz")
        return archive.name, archive.read_bytes()


def with_image(values: str, image: Image) -> str:
    """The text of values.yaml with this image; its comments stay.

    Raises:
        ReleaseError: the text has no such lines, or several.
    """
    changes = {f"  repository: {NAME}\n": f"  repository: {image.repository}\n"}
    if image.digest:
        changes['  digest: ""\n'] = f"  digest: {image.digest}\n"
    for line, instead in changes.items():
        if (found := values.count(f"\n{line}")) != 1:
            raise ReleaseError(f"values.yaml of the chart has {found} lines {line.strip()!r}, expected 1: restore it")
        values = values.replace(f"\n{line}", f"\n{instead}")
    return values
