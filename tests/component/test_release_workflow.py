"""The scripts of release.yml, as they stand there. Stand-ins write down the calls that would leave this machine."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml

from webhook import __version__

ROOT: Final = Path(__file__).parents[2]
WORKFLOW: Final = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
CHART: Final = f"kubevirt-coschedule-{__version__}.tgz"
PROVENANCE: Final = f"kubevirt-coschedule-{__version__}.intoto.jsonl"
DIGEST: Final = "sha256:0123"

STAND_IN: Final = """#!/bin/bash
echo "${0##*/} $*" >>"$CALLS"
[ "${0##*/} $1" != "$FAILS" ] || exit 1
case "${0##*/} $1" in
  "helm push") echo "Digest: $PUSHED" >&2 ;;
  "docker buildx") [ "$3" != inspect ] || echo "$PUSHED" ;;
  "cosign sign-blob") touch "$4" ;;
esac
"""


class Runner:
    """Runs the scripts of a job in a directory, as GitHub's runner does: bash, with -e and pipefail."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.calls = directory / "calls"
        programs = directory / "bin"
        programs.mkdir()
        for name in ("cosign", "docker", "gh", "helm"):
            (programs / name).write_text(STAND_IN)
            (programs / name).chmod(0o755)
        (directory / "bundle").write_text("{}\n")
        self.environment = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "CALLS": str(self.calls),
            "FAILS": "",
            "PUSHED": DIGEST,
            "BUNDLE": str(directory / "bundle"),
            "CHART": f"registry.example/owner/charts/kubevirt-coschedule@{DIGEST}",
            "GITHUB_ACTOR": "somebody",
            "GITHUB_OUTPUT": str(directory / "output"),
            "GITHUB_REF_NAME": f"v{__version__}",
            "GITHUB_REPOSITORY": "Owner/Name",
            "GITHUB_REPOSITORY_OWNER": "Owner",
            "IMAGE": f"registry.example/owner/kubevirt-coschedule@{DIGEST}",
            "REGISTRY": "registry.example",
            "RUNNER_TEMP": str(directory),
            "TOKEN": "token",
        }

    def run(self, job: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the scripts of a job up to the first that fails. Returns the last one that ran."""
        assert WORKFLOW["defaults"] == {"run": {"shell": "bash"}}
        for step in (step for step in WORKFLOW["jobs"][job]["steps"] if "run" in step):
            ran = subprocess.run(  # noqa: S603 - our own script
                ["/bin/bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.directory / step.get("working-directory", "."),
                env=self.environment | environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if ran.returncode:
                break
        return ran


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """In a directory with the module that has the version, and a release in dist."""
    (tmp_path / "webhook").mkdir()
    (tmp_path / "webhook/__init__.py").write_bytes((ROOT / "webhook/__init__.py").read_bytes())
    dist = tmp_path / "dist"
    dist.mkdir()
    files = {"install.yaml": b"an install", CHART: b"a chart"}
    for name, content in files.items():
        (dist / name).write_bytes(content)
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    (dist / "SHA256SUMS").write_text(sums)
    (dist / "RELEASE_NOTES.md").write_text("notes")
    return Runner(tmp_path)


def test_the_release_page_gets_each_file_with_its_signature_and_the_provenance(runner: Runner) -> None:
    """The image and the chart are signed by digest; the notes are the text of the page."""
    ran = runner.run("publish")
    assert ran.returncode == 0, ran.stderr
    calls = [line.split() for line in runner.calls.read_text().splitlines()]
    assert ["helm", "push", f"dist/{CHART}", "oci://registry.example/owner/charts"] in calls
    assert ["cosign", "sign", "--yes", runner.environment["IMAGE"], runner.environment["CHART"]] in calls
    (created,) = (call for call in calls if call[0] == "gh")
    signed = {"dist/install.yaml", f"dist/{CHART}", "dist/SHA256SUMS"}
    assert created[-7:].count(f"dist/{PROVENANCE}") == 1
    assert set(created[-7:]) == signed | {f"{name}.sigstore.json" for name in signed} | {f"dist/{PROVENANCE}"}
    assert all((runner.directory / name).is_file() for name in created[-7:])
    output = (runner.directory / "output").read_text()
    name, digest = runner.environment["CHART"].split("@")
    assert f"name={name}\ndigest={digest}\n" in output, "what the next steps sign"


@pytest.mark.parametrize("fails", ["docker login", "helm push", "cosign sign", "cosign sign-blob"])
def test_nothing_is_published_after_a_call_that_failed(runner: Runner, fails: str) -> None:
    """The release page comes last."""
    assert runner.run("publish", FAILS=fails).returncode != 0
    assert runner.calls.read_text().splitlines()[-1].startswith(fails)


def test_a_chart_without_a_digest_is_not_signed(runner: Runner) -> None:
    """By its tag alone it could be another chart by then."""
    assert runner.run("publish", PUSHED="").returncode != 0
    assert "cosign" not in runner.calls.read_text()


def test_a_file_that_changed_on_its_way_is_not_signed(runner: Runner) -> None:
    """SHA256SUMS has another checksum."""
    (runner.directory / "dist/install.yaml").write_text("another install")
    ran = runner.run("publish")
    assert ran.returncode != 0
    assert "install.yaml: FAILED" in ran.stdout
    assert not runner.calls.exists()
