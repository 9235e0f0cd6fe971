"""Holds the repository to its own rules of size, names and prose. `words.toml` has the lists and the exceptions.

    python .ci/house [PATH...]     PATH: show what is found there, as in webhook/core or README.md; otherwise all

One line a finding: file, line, rule, what was found, what was expected, what to do. Exits with 1 where there is one.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from commits import long_subjects
from prose import empty_docstrings, long_sentences, phrases, proselint_checks
from repository import load
from structure import forbidden_names, full_folders, long_modules, shared_names

RULES = (
    long_modules,
    full_folders,
    shared_names,
    forbidden_names,
    empty_docstrings,
    long_sentences,
    phrases,
    proselint_checks,
)


def main(paths: Sequence[str], root: Path = Path(__file__).parents[2]) -> int:
    """Print the findings in `root` whose path begins with one of `paths`, or all. Returns the exit code."""
    repository = load(root)
    shown = tuple(path.rstrip("/") for path in paths) or ("",)
    found = (*(each for rule in RULES for each in rule(repository)), *long_subjects(root))
    findings = sorted({each for each in found if each.path.startswith(shown)})
    for finding in findings:
        print(finding)
    counts = Counter(finding.rule for finding in findings)
    print(f"{len(findings)} findings:", ", ".join(f"{rule} {count}" for rule, count in sorted(counts.items())))
    return min(1, len(findings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
