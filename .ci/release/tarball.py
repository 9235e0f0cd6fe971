"""A tar.gz whose bytes depend on the names and contents of its files alone."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Collection, Iterable


def tarball(
    files: Iterable[tuple[str, bytes]], seconds: int, *, executables: Collection[str] = (), level: int = 9
) -> bytes:
    """The files in this order. `seconds` since 1970 is the time of each, `level` that of gzip."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=level, mtime=seconds) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as new,
    ):
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), seconds, 0o755 if name in executables else 0o644
            new.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
