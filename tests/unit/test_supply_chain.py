"""What the image ships may be shipped, and what a workflow calls is a make target that runs here, too."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import pytest
import yaml
from packaging.requirements import Requirement

ROOT: Final = Path(__file__).parents[2]
WORKFLOWS: Final = sorted((ROOT / ".github/workflows").glob("*.yml"))

ALLOWED: Final = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "PSF-2.0", "Unlicense", "Zlib"),
        "MPL-2.0",  # certifi: asks for the source of changed files, and the image ships the files unchanged
    }
)
"""SPDX names of licenses that let an image under Apache-2.0 ship the package unchanged."""

IN_SPDX: Final = {"Apache 2.0": "Apache-2.0", "MIT License": "MIT"}
"""What packages without a License-Expression call their license."""


def shipped() -> list[Requirement]:
    """The rows of requirements.lock that hold on this Python: what the image installs."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    rows = [Requirement(row) for row in re.findall(r"^[a-z].*?(?= \\$)", lock, re.MULTILINE)]
    return [row for row in rows if row.marker is None or row.marker.evaluate()]


def refused(license_: str) -> set[str]:
    """The licenses that an SPDX expression requires, and ALLOWED does not have."""
    clauses = [part.split(" OR ") for part in re.sub("[()]", "", license_).split(" AND ")]
    return {" OR ".join(choice) for choice in clauses if not ALLOWED.intersection(choice)}


@pytest.mark.parametrize("requirement", shipped(), ids=lambda requirement: requirement.name)
def test_the_license_of_a_shipped_package_lets_us_ship_it(requirement: Requirement) -> None:
    """Otherwise read the license: add its SPDX name to ALLOWED with the reason, or take another package."""
    package = distribution(requirement.name)
    stated = package.metadata.get("License-Expression") or package.metadata.get("License") or "none"
    assert package.version in requirement.specifier
    assert refused(IN_SPDX.get(stated, stated)) == set()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.name)
def test_a_workflow_names_each_action_by_its_commit(workflow: Path) -> None:
    """Who can move a tag of an action could otherwise run code with our tokens."""
    used = re.findall(r"uses: (\S+)", workflow.read_text(encoding="utf-8"))
    assert used
    assert [action for action in used if not re.search(r"^\./|@[0-9a-f]{40}$", action)] == []


BUILDS: Final = re.compile(r"docker (?:build|run|pull)\b|buildx (?:build|create)|apt-get|\bpip\b|\bmake\b|--sbom")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.name)
def test_a_job_that_may_write_packages_builds_and_installs_nothing(workflow: Path) -> None:
    """What a builder, an emulator or a scanner brings with it is pinned by nobody."""
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values()
    writing = [job for job in jobs if "write" in (job.get("permissions") or {}).get("packages", "")]
    assert bool(writing) is (workflow.name == "release.yml")
    scripts = [step.get("run", "") for job in writing for step in job["steps"]]
    assert [found for script in scripts for found in BUILDS.findall(script)] == []


@pytest.mark.parametrize("requirement", shipped(), ids=lambda requirement: requirement.name)
def test_a_shipped_package_has_the_text_of_its_license(requirement: Requirement) -> None:
    """The image copies it with the package; the licenses ask for that."""
    texts = [path for path in distribution(requirement.name).files or [] if path.name.lower().startswith("license")]
    assert any(path.locate().stat().st_size for path in texts)


@pytest.mark.parametrize(
    ("license_", "refuses"),
    [
        ("MIT", set()),
        ("Apache-2.0 AND MIT", set()),
        ("GPL-3.0-only OR MIT", set()),
        ("GPL-3.0-only", {"GPL-3.0-only"}),
        ("MIT AND LGPL-3.0-only", {"LGPL-3.0-only"}),
        ("MIT AND (AGPL-3.0-only OR GPL-3.0-only)", {"AGPL-3.0-only OR GPL-3.0-only"}),
        ("none", {"none"}),
    ],
)
def test_a_license_that_is_not_on_the_list_is_refused(license_: str, refuses: set[str]) -> None:
    """One choice of each OR must be on the list."""
    assert refused(license_) == refuses


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_make_targets_that_there_are(workflow: Path) -> None:
    """Nothing here can run a workflow, so what it calls must be what runs here."""
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values()
    runs = "\n".join(step.get("run", "") for job in jobs for step in job.get("steps", []))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    called = set(re.findall(r"\bmake ([a-z-]+)", runs))
    assert called
    assert called <= targets


def test_make_audit_asks_about_each_locked_package() -> None:
    """`--strict` fails if pip-audit can't ask about one: no answer is no good news."""
    make = subprocess.run(["make", "-n", "audit"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607 - make
    assert "for lock in requirements*.lock" in make.stdout
    assert "pip-audit --strict --require-hashes --disable-pip" in make.stdout
