"""The manifest that `kubectl krew install` reads: where the archive of each platform is, and its checksum."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

import yaml
from archives import archive_name
from checkout import VERSION, ReleaseError
from launcher import NAME
from packages import minors

PLUGIN: Final = "coschedule"
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")

_SHORT: Final = "Shows which VMs are with their share-manager"  # 50 characters at most, by the rules of krew's index
_DESCRIPTION: Final = """\
The webhook kubevirt-coschedule starts a KubeVirt VM on the node of the Longhorn
share-manager that serves the VM's disk. This plugin shows which VMs are there,
explains each decision of the webhook, and shows what a cluster would gain
before the webhook is installed. It reads the cluster with your kubeconfig.
"""
_CAVEATS: Final = """\
The plugin needs CPython {versions} on the PATH.
On Linux it needs glibc 2.28 or newer.
"""


def repository(name: str) -> str:
    """The value of REPOSITORY, which may be empty.

    Raises:
        ReleaseError: the value is no OWNER/NAME.
    """
    if name and not _REPOSITORY.fullmatch(name):
        raise ReleaseError(f"REPOSITORY is {name!r}, expected OWNER/NAME, as in the address on GitHub")
    return name


def krew_manifest(repository: str, archives: Mapping[str, bytes]) -> bytes:
    """The manifest, for archives by platform that are files of a release of this repository on GitHub."""
    *older, newest = minors()
    home = f"https://github.com/{repository}"
    manifest = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": PLUGIN},
        "spec": {
            "version": f"v{VERSION}",
            "homepage": home,
            "shortDescription": _SHORT,
            "description": _DESCRIPTION,
            "caveats": _CAVEATS.format(versions=f"{', '.join(older)} or {newest}"),
            "platforms": [
                {
                    "selector": {"matchLabels": dict(zip(("os", "arch"), platform.split("-"), strict=True))},
                    "uri": f"{home}/releases/download/v{VERSION}/{archive_name(platform)}",
                    "sha256": hashlib.sha256(content).hexdigest(),
                    "bin": NAME,
                }
                for platform, content in archives.items()
            ],
        },
    }
    return yaml.safe_dump(manifest, sort_keys=False).encode()
