"""What the SBOM of the image takes from the Dockerfile and from the lock."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from checkout import ReleaseError
from image import Image
from image_sbom import image_sbom

LOCK: Final = (
    f"new==1.0 ; python_full_version >= '3.13' \\\n    --hash=sha256:{'a' * 64}\n    # via kubevirt-coschedule\n"
    f"old==1.0 ; python_full_version < '3.13' \\\n    --hash=sha256:{'b' * 64}\n    # via kubevirt-coschedule\n"
    f"other==1.0 ; sys_platform == 'win32' \\\n    --hash=sha256:{'c' * 64}\n    # via kubevirt-coschedule\n"
)
DIGEST: Final = f"sha256:{'d' * 64}"


def components(base: str) -> dict[str, dict[str, Any]]:
    """The components of an image on this base, by name."""
    text = image_sbom(Image("name", ""), f"# ours\nARG PYTHON_IMAGE={base}\nFROM ${{PYTHON_IMAGE}}\n", LOCK, 1)
    return {item["name"]: item for item in json.loads(text)["components"]}


@pytest.mark.parametrize(("base", "package"), [("python:3.13-slim", "new"), ("python:3.12.1", "old")])
def test_the_packages_are_those_for_the_python_of_the_base(base: str, package: str) -> None:
    """On Linux."""
    assert components(base).keys() == {"python", "kubevirt-coschedule", package}


@pytest.mark.parametrize(
    ("base", "version", "purl"),
    [
        ("python:3.13-slim", "3.13-slim", "pkg:docker/python@3.13-slim"),
        (f"python:3.13-slim@{DIGEST}", "3.13-slim", f"pkg:docker/python@{DIGEST}"),
    ],
)
def test_the_base_is_named_by_its_digest_if_the_dockerfile_has_one(base: str, version: str, purl: str) -> None:
    """And by its tag otherwise."""
    found = components(base)["python"]
    assert (found["version"], found["purl"]) == (version, purl)


def test_a_mirror_of_the_base_is_named_with_its_registry() -> None:
    """A port is no tag."""
    found = components("registry.example:5000/team/python:3.13")["registry.example:5000/team/python"]
    assert (found["version"], found["purl"].split("?")[0]) == ("3.13", "pkg:docker/python@3.13")


@pytest.mark.parametrize("base", ["python", "debian:13", f"python@{DIGEST}"])
def test_a_base_that_tells_no_version_of_python_is_refused(base: str) -> None:
    """A marker could not be compared with anything."""
    with pytest.raises(ReleaseError, match="no line ARG PYTHON_IMAGE="):
        components(base)
