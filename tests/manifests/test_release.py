"""The files of a release, each used as a user would: two runs of the real command, the real kubectl, helm and pip."""

from __future__ import annotations

import json
import re
import shutil
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from controlplane import build
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.version import Version
from support.control_plane.chart import ISSUER, render, without_helm
from support.control_plane.rendering import CERT_MANAGER, DEFAULT, NAME, ROOT, identity, installed, kustomize
from support.drivers.releasing import SECONDS, release, run

from webhook import __version__

DIGEST: Final = f"sha256:{'0123456789abcdef' * 4}"
IMAGE: Final = f"registry.example:5000/team/{NAME}"
GIVEN: Final = (f"--image={IMAGE}", f"--digest={DIGEST}")
FILES: Final = {DEFAULT: "install.yaml", CERT_MANAGER: "install-cert-manager.yaml"}
OF_PYTHON: Final = str(Version(__version__))  # 0.2.0.dev0 for 0.2.0-dev
WHEEL: Final = f"kubevirt_coschedule-{OF_PYTHON}-py3-none-any.whl"
SDIST: Final = f"kubevirt_coschedule-{OF_PYTHON}.tar.gz"
CHART: Final = f"{NAME}-{__version__}.tgz"
SBOM: Final = f"{WHEEL}.cdx.json"
FOLDER: Final = f"{NAME}-manifests-{__version__}.tgz"
OPTIONS: Final = ("events.yaml", "monitoring.yaml", "reunite.yaml")
OTHERS: Final = ("RELEASE_NOTES.md", "SHA256SUMS")

each_install = pytest.mark.parametrize("install", FILES)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of this checkout, with the image by its digest."""
    build.kubectl()  # where one is not built, these tests are skipped
    build.helm()
    to: Path = tmp_path_factory.mktemp("release") / "dist"
    done = release(to, *GIVEN)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{len(names(to))} files of version {__version__}" in done.stdout
    assert "Without" not in done.stdout
    return to


def names(directory: Path) -> set[str]:
    """The names of what is in a directory."""
    return {path.name for path in directory.iterdir()}


def objects(path: Path) -> list[dict[str, Any]]:
    """The objects of a file, in their order."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def with_image(items: Sequence[Any], image: str) -> list[Any]:
    """The objects as they are with another image in every container."""
    return list(
        yaml.safe_load_all(yaml.safe_dump_all(items).replace(f"image: {NAME}:{__version__}\n", f"image: {image}\n"))
    )


def test_a_second_release_is_the_same(made: Path, tmp_path: Path) -> None:
    """Byte for byte, although it is made later and into another directory. Only helm packs the time of its call."""
    assert release(tmp_path / "dist", *GIVEN).returncode == 0
    first, second = ({path.name: path.read_bytes() for path in each.iterdir()} for each in (made, tmp_path / "dist"))
    assert first.keys() == {WHEEL, SDIST, CHART, SBOM, FOLDER, *FILES.values(), *OPTIONS, *OTHERS}
    assert {name for name in first if first[name] != second.get(name)} <= {CHART, "SHA256SUMS"}
    with tarfile.open(made / SDIST) as archive:
        assert {member.mtime for member in archive} == {SECONDS}


def test_sha256sum_finds_every_file_as_it_was(made: Path, tmp_path: Path) -> None:
    """And one that was changed on its way."""
    there = shutil.copytree(made, tmp_path / "downloaded")
    check = ("sha256sum", "--strict", "--check", "SHA256SUMS")
    done = run(*check, directory=there)
    assert done.returncode == 0
    assert {line.removesuffix(": OK") for line in done.stdout.splitlines()} | {*OTHERS} == names(there)
    (there / "install.yaml").write_text("kind: List\n", encoding="utf-8")
    assert "install.yaml: FAILED\n" in run(*check, directory=there).stdout


@each_install
def test_the_install_is_what_kubectl_applies_from_manifests(install: str, made: Path) -> None:
    """The same objects in the same order. Only the image is another one: with its registry and its digest."""
    found = objects(made / FILES[install])
    assert found == with_image(installed(install), f"{IMAGE}@{DIGEST}")
    assert f"image: {IMAGE}@{DIGEST}\n" in (made / FILES[install]).read_text(encoding="utf-8")


def without_accounts(items: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], Mapping[str, Any]]:
    """The objects, without whose requests a policy confines: that alone differs between chart and manifests."""
    return {
        identity(item): {**item, "spec": {**item["spec"], "matchConditions": None}}
        if item["kind"] == "ValidatingAdmissionPolicy"
        else item
        for item in items
    }


def test_the_folder_is_an_install_for_kustomize(made: Path, tmp_path: Path) -> None:
    """With the image of the release, and nothing outside of it."""
    assert run("tar", "-xzf", made / FOLDER, directory=tmp_path).returncode == 0
    found = {identity(item): item for item in kustomize(tmp_path / "manifests")}
    assert found == {identity(item): item for item in objects(made / FILES[DEFAULT])}


@each_install
def test_the_packed_chart_makes_the_objects_of_the_install(install: str, made: Path) -> None:
    """With its default values, the image included. Only the namespace is not in the chart."""
    items = render(ISSUER[install], chart=made / CHART)
    expected = {identity(item): item for item in objects(made / FILES[install]) if item["kind"] != "Namespace"}
    assert without_accounts(map(without_helm, items)) == without_accounts(expected.values())


def test_without_a_digest_the_image_is_its_tag(made: Path, tmp_path: Path) -> None:
    """The command says so.

    It replaces the release that was there, and leaves what else is in the directory.
    """
    there = shutil.copytree(made, tmp_path / "dist")
    (there / "site").mkdir()
    with (there / "SHA256SUMS").open("a", encoding="utf-8") as sums:
        sums.write(f"{'0' * 64}  old-0.0.9.whl\n")
    (there / "old-0.0.9.whl").touch()
    done = release(there)
    assert done.returncode == 0
    assert f"the image is named by its tag, {NAME}:{__version__}," in done.stdout
    assert f"Without IMAGE=REGISTRY/{NAME} the image has no registry" in done.stdout
    assert names(there) == {*names(made), "site"}
    assert objects(there / "install.yaml") == list(installed())
    expected = [item for item in installed() if item["kind"] != "Namespace"]
    assert without_accounts(map(without_helm, render(chart=there / CHART))) == without_accounts(expected)


def test_pip_installs_the_wheel(made: Path, tmp_path: Path) -> None:
    """Into a new venv, without a network: the packages that it needs are those of this venv. Then its programs run."""
    venv = tmp_path / "venv"
    assert run(sys.executable, "-m", "venv", venv, directory=tmp_path).returncode == 0
    python, scripts = venv / "bin/python", venv / "bin"
    pip = (python, "-m", "pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check", made / WHEEL)
    done = run(*pip, directory=tmp_path)
    assert done.returncode == 0, done.stderr
    asked = run(python, "-c", "import webhook, certs; print(webhook.__file__, certs.__file__)", directory=tmp_path)
    packages = Path(asked.stdout.split()[0]).parents[1]
    assert asked.stdout.split() == [str(packages / name / "__init__.py") for name in ("webhook", "certs")]
    assert packages.is_relative_to(venv)
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    told = run(scripts / "kubectl-coschedule", "--version", directory=tmp_path)
    assert told.stdout.startswith(f"kubectl-coschedule, version {__version__}"), told.stderr
    assert run(scripts / "kubevirt-coschedule-certs", "--help", directory=tmp_path).returncode == 0
    shown = run(scripts / "kubevirt-coschedule", "demo", directory=tmp_path)
    assert shown.returncode == 0, shown.stderr


def test_the_sdist_makes_the_wheel(made: Path, tmp_path: Path) -> None:
    """The same wheel, byte for byte. The chart is in the sdist, too, and nothing that lies around."""
    assert run("tar", "-xzf", made / SDIST, directory=tmp_path).returncode == 0
    source = tmp_path / SDIST.removesuffix(".tar.gz")
    assert {"charts", "manifests", "docs", "CHANGELOG.md"} <= names(source)
    assert [path for path in source.rglob("*") if path.suffix == ".pyc"] == []
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "built")
    done = run(*command, directory=source, SOURCE_DATE_EPOCH=str(SECONDS))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "built" / WHEEL).read_bytes() == (made / WHEEL).read_bytes()


def test_the_sbom_is_of_the_lock(made: Path) -> None:
    """It is CycloneDX 1.6 by its schema. Every locked package is in it, with the hashes of its files."""
    text = (made / SBOM).read_text(encoding="utf-8")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bom = json.loads(text)
    assert bom["metadata"]["component"]["name"] == NAME
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = {line.split()[0].replace("==", "@") for line in lock.splitlines() if re.match(r"[a-z].*==", line)}
    assert {item["purl"] for item in bom["components"]} == {f"pkg:pypi/{each}" for each in pinned}
    hashes = [each for item in bom["components"] for each in item["externalReferences"][0]["hashes"]]
    assert len(hashes) == lock.count("--hash=")
