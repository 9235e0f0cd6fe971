"""Images as archives that `ctr images import` takes, made without a builder: one program from the host, and no more."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path
from typing import Final

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}  # uname's word, and Go's
_NOBODY: Final = "65535:65535"


def pause(program: Path, name: str, archive: Path) -> Path:
    """An image called `name` that runs one static program, as a docker-archive in the file `archive`."""
    layer = _tar({"pause": (program.read_bytes(), 0o755)})
    config = {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Entrypoint": ["/pause"], "User": _NOBODY},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{}],
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    files = {"config.json": json.dumps(config).encode(), "manifest.json": json.dumps(manifest).encode()}
    archive.write_bytes(_tar({"layer.tar": (layer, 0o644), **{key: (text, 0o644) for key, text in files.items()}}))
    return archive


def _tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
