"""`python tests/modelcheck`: search all worlds of settings.py, and print what was found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from time import process_time
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from modelcheck import settings  # noqa: E402 - a script finds its neighbours after it has said where they are
from modelcheck.search import search  # noqa: E402
from modelcheck.state import Setting  # noqa: E402
from modelcheck.story import tell  # noqa: E402
from support.sizes import size  # noqa: E402


def main() -> None:
    """Search the worlds, and print one line for each."""
    parser = argparse.ArgumentParser(prog="python tests/modelcheck", description=__doc__)
    parser.add_argument("--story", action="store_true", help="tell the steps to the first VM that is stranded")
    story, vms = parser.parse_args().story, size("MODEL_VMS")
    _print("All assumptions hold", settings.as_stated(vms), story=story)
    _print("Other pods take places", settings.with_others(3), story=story)
    _print("One assumption does not hold", settings.with_one_assumption_broken(3), story=story)


def _print(title: str, worlds: Mapping[str, Setting], *, story: bool) -> None:
    _write(f"{title}\n{'states':>10} {'replicas':>9} {'stranded':>9} {'CPU':>7}  world")
    for name, setting in worlds.items():
        began = process_time()
        found = search(setting)
        spent = process_time() - began
        _write(f"{found.states:>10,} {found.replicas:>9,} {found.most_stranded:>9} {spent:>5.1f} s  {name}")
        if story and found.stranded_by:
            _write(tell(found.stranded_by))
    _write("")


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
