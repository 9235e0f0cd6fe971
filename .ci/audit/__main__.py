"""`make audit`: asks for the known vulnerabilities of each locked package, by pip-audit of the venv that runs this.

A package that could not be asked about is named: no answer is no good news.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
_OPTIONS: Final = ("--format=json", "--progress-spinner=off", "--require-hashes", "--disable-pip")


def main() -> int:
    """Print what is known of each lock. Returns 1 if a package is vulnerable or could not be asked about."""
    lines = [line for lock in sorted(ROOT.glob("requirements*.lock")) for line in report(lock.name, asked(lock))]
    sys.stdout.writelines(f"{line}\n" for _, line in lines)
    return 0 if all(good for good, _ in lines) else 1


def asked(lock: Path) -> list[dict[str, Any]]:
    """Return what pip-audit says of each package. Exits with its own words if it says nothing."""
    program = Path(sys.executable).with_name("pip-audit")
    done = subprocess.run([program, *_OPTIONS, "-r", lock], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if not done.stdout:
        raise SystemExit(f"error: {lock.name}: pip-audit gave no answer: {done.stderr.strip()}")
    found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    return found


def report(lock: str, packages: list[dict[str, Any]]) -> Iterable[tuple[bool, str]]:
    """Yield lines for a person, and whether each is good news."""
    skipped = [each for each in packages if "skip_reason" in each]
    vulnerable = [each for each in packages if each.get("vulns")]
    for each in vulnerable:
        known = "; ".join(f"{found['id']}, fixed in {_words(found['fix_versions'])}" for found in each["vulns"])
        yield False, f"{lock}: {each['name']} {each['version']} is vulnerable: {known}"
    if skipped:
        names = _words(each["name"] for each in skipped) if len(skipped) < len(packages) else "all of them"
        expected = "expected a package index that tells vulnerabilities, as PyPI does"
        line = f"{lock}: {len(skipped)} of {len(packages)} packages could not be asked about: {names}; {expected}"
        yield False, f"{line}. The first answer: {skipped[0]['skip_reason']}"
    if good := len(packages) - len(skipped) - len(vulnerable):
        yield True, f"{lock}: {good} packages have no known vulnerability"


def _words(names: Iterable[str]) -> str:
    return ", ".join(names) or "no version yet"


if __name__ == "__main__":
    sys.exit(main())
