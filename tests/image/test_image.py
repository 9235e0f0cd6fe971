"""The image as it is built and run: its programs, its size, and that two builds are equal byte for byte."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.control_plane import ControlPlane
from support.control_plane.rendering import ROOT
from support.control_plane.unattended import Unattended, without_us
from support.image.containers import Containers
from support.node import project_image
from support.node.project_image import BASE, done, run
from support.scenarios.admitting import admitted, until

MAX_ADDED_MB: Final = 75.0
IMPORT_ALL: Final = """
import importlib, pkgutil
for package in map(importlib.import_module, ("webhook", "certs")):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module.name.endswith(".__main__") or importlib.import_module(module.name)
        print(module.name)
"""
UNPRIVILEGED: Final = """
import os, pathlib
for place in ("/", "/tmp", "/app", "/etc"):
    try:
        pathlib.Path(place, "file").touch()
        print(place, "can be written")
    except OSError as error:
        assert error.errno in (13, 30), error
print(os.getuid(), os.getgid(), os.getgroups(), pathlib.Path("/proc/self/status").read_text())
"""


class InContainers(Unattended):
    """The whole install, with each program in a container of the image."""

    def __init__(self, image: Containers, plane: ControlPlane, directory: Path) -> None:
        super().__init__(plane, directory)
        self._image = image

    def __exit__(self, *_: object) -> None:
        self._image.remove()
        super().__exit__()

    def command(self, *words: str) -> list[str]:
        """Python of the image, as a pod of the program's service account."""
        option = words.index("--kubeconfig")
        other_words = [*words[:option], *words[option + 2 :]]
        return self._image.command([self._image.entrypoint[0], *other_words], Path(words[option + 1]))


def test_a_container_is_as_the_manifests_ask(image: Containers) -> None:
    """Otherwise the tests below would show nothing: it can write nowhere, and is nobody."""
    said = image.run("python", "-c", UNPRIVILEGED)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith("65532 65532 [")
    assert re.search(r"^CapEff:\s+0+$", said.stdout, re.MULTILINE)
    assert re.search(r"^CapBnd:\s+0+$", said.stdout, re.MULTILINE)


@pytest.mark.parametrize(("program", "words"), [("webhook", "serve"), ("certs", "keep")])
def test_help_names_the_commands(program: str, words: str, image: Containers) -> None:
    """Of both programs, on standard output."""
    said = image.run("python", "-m", program, "--help")
    assert (said.returncode, said.stderr) == (0, "")
    assert f"\n  {words} " in said.stdout


def test_nothing_in_it_installs_packages(image: Containers) -> None:
    """Neither pip nor what would bring it back."""
    said = image.run("python", "-c", "import importlib.util as u; print(u.find_spec('pip'), u.find_spec('ensurepip'))")
    assert (said.returncode, said.stdout) == (0, "None None\n")
    said = image.run("python", "-c", "import shutil; print(shutil.which('pip'), shutil.which('pip3'))")
    assert (said.returncode, said.stdout) == (0, "None None\n")


def test_the_demo_runs(image: Containers) -> None:
    """Ten AdmissionReviews over TLS, with a certificate of `certs issue`: no place to write is needed."""
    said = image.run(*image.entrypoint, "demo")
    assert (said.returncode, said.stderr) == (0, "")
    assert "10 of 10 answers over TLS are as expected." in said.stdout


def test_every_module_imports(image: Containers) -> None:
    """Nothing that a program can reach was left out of the image."""
    said = image.run("python", "-c", IMPORT_ALL)
    assert (said.returncode, said.stderr) == (0, "")
    files = {file for package in ("webhook", "certs") for file in (ROOT / package).rglob("*.py")}
    ours = {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files}
    assert set(said.stdout.split()) | {"webhook", "certs"} == ours


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane with a claim on node-a, and nothing of ours."""
    with without_us(tmp_path) as own:
        yield own


def test_serve_and_keep_bring_up_an_install(image: Containers, plane: ControlPlane, shared: Path) -> None:
    """`certs keep` issues the certificate, two `serve` take it, and the API server's call for a pod is answered.

    The API server has no Pod of a replica, because nobody acts on the Deployment. So the answer is a preference.
    """
    with InContainers(image, plane, shared) as install:
        install.start_servers()
        install.start_keeper()
        install.until_serving()
        assert until(lambda: admitted(plane.api, "disk").preferred, "a pod with a preference") == ["node-a"]


def inspected(name: str) -> dict[str, Any]:
    """The OCI configuration of an image."""
    found: dict[str, Any] = json.loads(done(run(["buildah", "inspect", "--type=image", name])))["OCIv1"]
    return found


def pushed(directory: Path) -> dict[str, bytes]:
    """Every file of the image as a registry gets it, by its path."""
    done(run(["buildah", "push", "--quiet", project_image.name(), f"oci:{directory}:image"]))
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


@pytest.mark.usefixtures("built")
def test_the_image_adds_little_to_its_base(tmp_path: Path) -> None:
    """The files of its own layers, without compression."""
    pushed(tmp_path / "oci")
    of_base = len(inspected(BASE)["rootfs"]["diff_ids"])
    index = json.loads((tmp_path / "oci" / "index.json").read_text())
    manifest = json.loads(blob(tmp_path, index["manifests"][0]["digest"]).read_text())
    added = {layer["digest"]: megabytes(blob(tmp_path, layer["digest"])) for layer in manifest["layers"][of_base:]}
    print(f"the image adds {sum(added.values()):.1f} MB to its base: {sorted(added.values())}")  # noqa: T201 - the figure
    assert len(added) >= 2
    assert sum(added.values()) <= MAX_ADDED_MB


def blob(directory: Path, digest: str) -> Path:
    """The file of a digest."""
    return directory / "oci" / "blobs" / digest.replace(":", "/")


def megabytes(layer: Path) -> float:
    """The sizes of a layer's files."""
    with gzip.open(layer) as content, tarfile.open(fileobj=content) as files:
        return sum(file.size for file in files) / 1e6


@pytest.mark.usefixtures("built")
def test_two_builds_of_one_commit_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a cache, from checkouts with other times and other modes at other places."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    builds = []
    for number, mode in enumerate((0o700, 0o777)):
        checkout = copied(tmp_path / f"checkout-{number}", mode)
        project_image.build(checkout, "NO_CACHE=1")
        builds.append(pushed(tmp_path / f"oci-{number}"))
    assert builds[0].keys() == builds[1].keys()
    assert builds[0] == builds[1]


def copied(directory: Path, mode: int) -> Path:
    """A copy of what a build reads, and the builder; every file has this mode, and the time of the copy."""
    for name in ("Dockerfile", ".dockerignore", "LICENSE", "Makefile", "requirements.lock"):
        directory.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, directory / name)
    for name in (".ci/image", "manifests", "webhook", "certs"):
        shutil.copytree(ROOT / name, directory / name, copy_function=shutil.copyfile)
    for place in directory.rglob("*"):
        os.chmod(place, mode)  # noqa: PTH101 - the shortest
    return directory
