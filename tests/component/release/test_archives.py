"""The archives of the command line, and their manifest: the real krew installs one, and the real kubectl runs it."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import yaml
from controlplane import build
from krew import PLUGIN, krew_manifest
from packages import PLATFORMS, minors, optional, packages
from sbom import locked
from support.drivers.releasing import PLATFORM, REPOSITORY, release, run
from support.drivers.serving import ROOT

from webhook import __version__

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]
ARCHIVE: Final = f"kubectl-coschedule-{__version__}-{PLATFORM}.tar.gz"
EXPLAIN: Final = (
    "explain",
    "-f",
    "manifests/examples/virtual-machine.yaml",
    "--manifests",
    "manifests/examples/cluster",
)

every_platform = pytest.mark.parametrize("platform", PLATFORMS)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of this checkout, as GitHub has it."""
    for program in (build.kubectl, build.helm, build.krew):
        program()  # where one is not built, these tests are skipped
    packages(PLATFORM)
    to: Path = tmp_path_factory.mktemp("release") / "dist"
    done = release(to, f"--repository={REPOSITORY}")
    assert (done.returncode, done.stderr) == (0, "")
    return to


@pytest.fixture
def kubectl(tmp_path: Path) -> Run:
    """Runs kubectl of a user who has krew, its index, and this Python."""
    programs, index, root = tmp_path / "bin", tmp_path / "index", tmp_path / "krew"
    programs.mkdir()
    (programs / "kubectl").symlink_to(build.kubectl())
    (programs / "kubectl-krew").symlink_to(build.krew())
    (programs / "python3").symlink_to(sys.executable)
    (index / "plugins").mkdir(parents=True)
    (index / "plugins/README.md").touch()
    somebody = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "a")):
        assert run("git", *somebody, *words, directory=index).returncode == 0
    environment = {
        "PATH": f"{root / 'bin'}:{programs}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "KREW_ROOT": str(root),
        "KREW_DEFAULT_INDEX_URI": str(index),
        "KREW_NO_UPGRADE_CHECK": "1",
    }

    def kubectl(*words: str | Path, directory: Path = ROOT) -> subprocess.CompletedProcess[str]:
        return run("kubectl", *words, directory=directory, **environment)

    assert kubectl("krew", "update").returncode == 0
    return kubectl


def test_krew_installs_the_archive_and_removes_it(made: Path, kubectl: Run, tmp_path: Path) -> None:
    """Between them the plugin is the program: the same answers as from the checkout, with the name that the user types.

    Nothing of it stays.
    """
    before = set((tmp_path / "krew").rglob("*"))
    install = ("krew", "install", f"--manifest={made / 'coschedule.yaml'}", f"--archive={made / ARCHIVE}")
    done = kubectl(*install)
    assert done.returncode == 0, done.stderr
    assert f"The plugin needs CPython {', '.join(minors()[:-1])} or {minors()[-1]} on the PATH." in done.stderr
    assert kubectl("krew", "list").stdout.split() == [f"detached/{PLUGIN}"]
    assert kubectl("coschedule", "--help").stdout.startswith("Usage: kubectl coschedule [OPTIONS] COMMAND")
    assert kubectl("coschedule", "version").stdout.startswith(f"kubectl-coschedule {__version__}")
    told = kubectl("coschedule", *EXPLAIN)
    expected = run(sys.executable, "-m", "webhook", *EXPLAIN, directory=ROOT)
    printed = expected.stdout.replace(": kubevirt-coschedule status", ": kubectl coschedule status")
    assert (told.returncode, told.stdout, told.stderr) == (expected.returncode, printed, expected.stderr)
    assert printed != expected.stdout
    assert told.returncode == 0
    shown = kubectl("coschedule", "demo", directory=tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert kubectl("krew", "uninstall", PLUGIN).returncode == 0
    assert {path.name for path in set((tmp_path / "krew").rglob("*")) - before} <= {"bin", "store", "receipts"}


def test_krew_refuses_another_archive(made: Path, kubectl: Run, tmp_path: Path) -> None:
    """The checksum of the manifest is that of the archive."""
    changed = tmp_path / "changed.tar.gz"
    changed.write_bytes((made / ARCHIVE).read_bytes() + b"\n")
    done = kubectl("krew", "install", f"--manifest={made / 'coschedule.yaml'}", f"--archive={changed}")
    assert done.returncode == 1
    assert "checksum does not match" in done.stderr
    assert kubectl("krew", "list").stdout.split() == []


def test_the_manifest_follows_the_rules_of_the_index(tmp_path: Path) -> None:
    """By its own program, for every platform. Each archive is at an address of the release."""
    manifest = tmp_path / "coschedule.yaml"
    manifest.write_bytes(krew_manifest(REPOSITORY, {platform: platform.encode() for platform in PLATFORMS}))
    check = (build.krew("validate-krew-manifest"), "-manifest", manifest, "-skip-install")
    done = run(*check, directory=tmp_path)
    assert done.returncode == 0, done.stderr
    spec = yaml.safe_load(manifest.read_text(encoding="utf-8"))["spec"]
    assert len(spec["shortDescription"]) <= 50
    where = f"https://github.com/{REPOSITORY}/releases/download/v{__version__}"
    assert [item["uri"] for item in spec["platforms"]] == [
        f"{where}/kubectl-coschedule-{__version__}-{platform}.tar.gz" for platform in PLATFORMS
    ]
    manifest.write_text(manifest.read_text(encoding="utf-8").replace("sha256: ", "sha256: 0"), encoding="utf-8")
    assert run(*check, directory=tmp_path).returncode != 0


@every_platform
def test_the_packages_are_those_of_the_lock(platform: str) -> None:
    """Without those of extras."""
    lock = locked((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    needed = {f"{each.name.replace('-', '_')}-{each.version}" for each in lock} - {
        f"{each.name.replace('-', '_')}-{each.version}" for each in lock if each.name in optional()
    }
    assert {path.name.removesuffix(".dist-info") for path in packages(platform).glob("*.dist-info")} == needed


MACHINES: Final = {
    "linux-amd64": (b"\x7fELF\x02\x01", 18, "<H", 62),  # e_machine of elf.h: EM_X86_64
    "linux-arm64": (b"\x7fELF\x02\x01", 18, "<H", 183),  # EM_AARCH64
    "darwin-arm64": (b"\xcf\xfa\xed\xfe", 4, "<I", 0x0100000C),  # cputype of mach/machine.h: CPU_TYPE_ARM64
}


@every_platform
def test_each_compiled_file_is_of_the_platform(platform: str) -> None:
    """By the first bytes of its content. Each version of Python has each of them, or all versions share one."""
    begin, offset, form, machine = MACHINES[platform]
    by_version: dict[str, set[str]] = {}
    for file in packages(platform).rglob("*.so"):
        content = file.read_bytes()
        assert content.startswith(begin), file
        assert struct.unpack_from(form, content, offset) == (machine,), file
        module, tag, _ = file.name.split(".", 2) if file.name.count(".") > 1 else (file.name, "abi3", "so")
        by_version.setdefault(tag.split("-")[1] if "-" in tag else tag, set()).add(f"{file.parent}/{module}")
    assert by_version.keys() - {"abi3"} == {each.replace(".", "") for each in minors()}
    shared = by_version.pop("abi3", set())
    first, *others = by_version.values()
    assert len(first) > 5
    assert all(other == first for other in others)
    assert first.isdisjoint(shared)


@pytest.fixture
def unpacked(made: Path, tmp_path: Path) -> Path:
    """The program of the archive, in a folder of its own."""
    with tarfile.open(made / ARCHIVE) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    return tmp_path / "unpacked/kubectl-coschedule"


def test_every_python_of_this_machine_runs_the_program(unpacked: Path, tmp_path: Path) -> None:
    """Whatever modules the user has in the current folder: none of them is imported."""
    (tmp_path / "here").mkdir()
    for module in ("yaml", "click", "webhook", "json"):
        (tmp_path / "here" / f"{module}.py").write_text("raise SystemExit(7)\n", encoding="utf-8")
    asked = {
        minor: [shutil.which(f"python{minor}") or "false", "-c", "import sys; print(sys.executable)"]
        for minor in minors()
    }
    there = {
        minor: done.stdout.strip()
        for minor, command in asked.items()
        if (done := run(*command, directory=tmp_path)).stdout
    }
    there[f"{sys.version_info.major}.{sys.version_info.minor}"] = sys.executable
    for minor, python in there.items():
        only = tmp_path / minor
        only.mkdir()
        (only / "python3").symlink_to(python)
        told = run(
            unpacked,
            "candidates",
            "-A",
            "--manifests",
            ROOT / "manifests/examples/cluster",
            directory=tmp_path / "here",
            PATH=str(only),
            PYTHONPATH=str(tmp_path / "here"),
        )
        assert told.returncode == 0, (minor, told.stderr)


@pytest.mark.parametrize(
    ("python", "found"),
    [('#!/bin/sh\ntest "$1" = --version || exit 1\necho Python 3.9.18\n', "Python 3.9.18"), ("", "no python3")],
    ids=["too old", "missing"],
)
def test_without_its_python_the_program_says_so(python: str, found: str, unpacked: Path, tmp_path: Path) -> None:
    """In one line, with what was found and what was expected."""
    (tmp_path / "bin").mkdir()
    if python:
        (tmp_path / "bin/python3").write_text(python, encoding="utf-8")
        (tmp_path / "bin/python3").chmod(0o755)
    told = run(unpacked, "status", directory=tmp_path, PATH=str(tmp_path / "bin"))
    assert (told.returncode, told.stdout) == (2, "")
    expected = f"{', '.join(minors()[:-1])} or {minors()[-1]}"
    assert told.stderr == (
        f"error: found {found}; expected Python {expected}, of CPython for {PLATFORM}, on the PATH; install one\n"
    )
