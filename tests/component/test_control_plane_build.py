"""The build of the control plane: once, whole or not at all, and with its reason where it fails. Go is a stand-in."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from controlplane import build
from controlplane.build import NotBuilt
from support.waits import MAX_WAIT_SECONDS

SCRIPT: Final = Path(build.__file__)
UNITS: Final = [unit.name for unit in build.EVERY_UNIT]

# It writes a line for each call. Where there is a pipe `hold`, it says so in the pipe `held`, and waits for a line.
# The programs that it makes run, and make the one file that a generator is asked for; or fail, where there is `refuse`.
GO: Final = """\
#!/bin/sh
if [ "$1" = env ]; then echo go{version}; exit; fi
echo "$(basename "$PWD")" >> "{directory}/calls"
while [ "$1" != -o ]; do shift; done
out=$2
shift 2
for package; do
    case $package in .) name=$(sed 's#.*/##; q' go.mod) ;; *) name=$(basename "$package") ;; esac
    cat > "$out/$name" <<'PROGRAM'
#!/bin/sh
if [ -e "{directory}/refuse" ]; then echo 'no such package'; exit 1; fi
for word; do case $word in *dir=*) mkdir "${{word#*dir=}}" && touch "${{word#*dir=}}/issuers.yaml" ;; esac; done
PROGRAM
    chmod +x "$out/$name"
done
if [ -e "{directory}/hold" ]; then exec 3< "{directory}/hold"; echo > "{directory}/held"; read _ <&3; fi
{end}
"""


# It installs a Go into the directory of its option.


class Machine:
    """A machine with an empty cache and a Go of ours; `run` builds on it."""

    def __init__(self, directory: Path, *, version: str = "99.1.0", end: str = "exit 0") -> None:
        self.directory = directory
        (directory / "bin").mkdir()
        (directory / "calls").touch()
        self.program("go", GO.format(version=version, directory=directory, end=end))
        path = f"{directory / 'bin'}{os.pathsep}{os.defpath}"
        self.environment = {"PATH": path, "XDG_CACHE_HOME": str(directory / "cache"), "HOME": str(directory)}

    def program(self, name: str, text: str) -> Path:
        """Have a program on the path."""
        path = self.directory / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        """Begin a build."""
        return subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, str(SCRIPT), *words], env=self.environment | environment, stderr=subprocess.PIPE, text=True
        )

    def run(self, *words: str, **environment: str) -> tuple[int, str]:
        """(the exit code of a build, what it said)."""
        process = self.start(*words, **environment)
        _, said = process.communicate(timeout=MAX_WAIT_SECONDS)
        return process.returncode, said

    @contextmanager
    def held(self) -> Iterator[subprocess.Popen[str]]:
        """A build whose first unit is held half done until the end of the block."""
        for name in ("hold", "held"):
            os.mkfifo(self.directory / name)
        ends = {name: os.open(self.directory / name, os.O_RDWR) for name in ("hold", "held")}
        try:
            process = self.start()
            assert select.select([ends["held"]], [], [], MAX_WAIT_SECONDS)[0], "nobody has begun to build"
            (self.directory / "hold").unlink()
            yield process
            os.write(ends["hold"], b"go on\n")
        finally:
            for end in ends.values():
                os.close(end)

    @property
    def calls(self) -> list[str]:
        """The units that Go was asked to build, in order."""
        return (self.directory / "calls").read_text().split()

    @property
    def cached(self) -> list[str]:
        """What is in the cache, hashes left out; what begins with a dot is half done."""
        cache = self.directory / "cache" / "kubevirt-coschedule"
        names = sorted(path.name for path in cache.iterdir() if path.is_dir())
        return [name if name.startswith(".") else name.rpartition("-")[0] for name in names]


def test_everything_is_built_once(tmp_path: Path) -> None:
    """The first build makes every unit and tells of each; the second calls nobody and says nothing."""
    machine = Machine(tmp_path)
    code, said = machine.run()
    assert (code, machine.calls, machine.cached) == (0, UNITS, sorted(UNITS))
    assert [name for name in UNITS if f"{name}: built in" not in said] == []
    assert machine.run() == (0, "")
    assert machine.calls == UNITS


def test_a_unit_that_no_test_needs_is_built_by_its_name_alone(tmp_path: Path) -> None:
    """A name on the command line builds that unit and no other; without one the unit is not built."""
    machine = Machine(tmp_path)
    assert "constant-webhook" not in UNITS
    assert machine.run("constant-webhook")[0] == 0
    assert machine.cached == ["constant-webhook"]


def test_a_killed_build_leaves_nothing_that_counts(tmp_path: Path) -> None:
    """What a killed build has made so far is not taken for built, and the next build clears it away."""
    machine = Machine(tmp_path)
    with machine.held() as killed:
        killed.kill()
        killed.communicate(timeout=MAX_WAIT_SECONDS)
        (half_done,) = machine.cached
        assert half_done.startswith(".etcd-")
    assert machine.run()[0] == 0
    assert machine.cached == sorted(UNITS)


def test_a_build_that_fails_says_why(tmp_path: Path) -> None:
    """The end of Go's own words is the error, nothing is built, and nothing half done is left."""
    machine = Machine(tmp_path, end="echo 'no space left on device' >&2; exit 1")
    code, said = machine.run()
    assert code == 1
    assert said.splitlines()[-1] == "error: etcd: go build: no space left on device"
    assert machine.cached == []


def test_assets_are_the_control_plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its programs come from KUBEBUILDER_ASSETS where that is set, kube-scheduler and kubectl where they are there."""
    monkeypatch.setenv(build.ASSETS, str(tmp_path))
    with pytest.raises(NotBuilt, match="has no etcd and no kube-apiserver"):
        build.programs()
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / name).touch()
    assert build.programs() == {name: tmp_path / name for name in ("etcd", "kube-apiserver")}
    for name in ("kube-scheduler", "kubectl", "kube-controller-manager"):
        (tmp_path / name).touch()
    assert build.programs().keys() == {"etcd", "kube-apiserver", "kube-scheduler"}
    assert (build.kubectl(), build.controller_manager()) == (tmp_path / "kubectl", tmp_path / "kube-controller-manager")
    with pytest.raises(NotBuilt, match=r"this asks for Kubernetes 1\.30"):
        build.programs(build.OLDEST)


def test_what_is_not_built_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that needs a program that is not built names the command that builds it."""
    monkeypatch.delenv(build.ASSETS, raising=False)
    monkeypatch.setattr(build, "CACHE", tmp_path)
    crds = (build.cert_manager_crds, build.prometheus_operator_crds)
    helms = (build.helm, lambda: build.helm(4), build.helm_unittest)
    ours = (build.kubectl, build.controller_manager, lambda: build.kubevirt("virt-api", "1.8"))
    for look in (build.programs, *ours, *helms, build.promtool, *crds):
        with pytest.raises(NotBuilt, match="is not built: run `make control-plane`"):
            look()
