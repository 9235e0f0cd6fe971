"""The commands of README.md and of the quick start: those that need no cluster run, the others are well-formed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from webhook import cli

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ("README.md", "docs/index.md")
_BLOCK: Final = re.compile(r"^ *```sh\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_MAKE: Final = {"make demo": ["demo"]}  # what the target runs; `make venv` is how these tests themselves came to run


def _shown() -> Iterator[list[str]]:
    for page in PAGES:
        for block in _BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
            for line in block.splitlines():
                yield shlex.split(line, comments=True)


def _ours() -> list[list[str]]:
    lines = list(_shown())
    made = [_MAKE[" ".join(words)] for words in lines if " ".join(words) in _MAKE]
    return made + [words[1:] for words in lines if words[:1] == ["kubevirt-coschedule"]]


@pytest.mark.parametrize("words", [each for each in _ours() if each == ["demo"] or "--manifests" in each], ids=" ".join)
def test_a_command_that_needs_no_cluster_runs(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """From the top of a clone. `status` exits with 1: of the example cluster one VM is apart, and one is stuck."""
    monkeypatch.chdir(ROOT)
    assert cli.main(words) == (1 if words[0] == "status" else 0)


@pytest.mark.parametrize("words", _ours(), ids=" ".join)
def test_a_command_has_only_words_that_the_program_knows(words: list[str]) -> None:
    """The name of the command, its options and its arguments."""
    with cli.COMMANDS.commands[words[0]].make_context(words[0], words[1:]) as context:
        assert context.params is not None


def test_each_target_of_make_is_one_that_runs_here() -> None:
    """Another target needs a row in `_MAKE`, or a reason to stand beside `make venv`."""
    targets = {" ".join(words) for words in _shown() if words[:1] == ["make"]}
    assert targets == {*_MAKE, "make venv"}


def test_each_folder_that_kubectl_applies_exists() -> None:
    """It has a kustomization."""
    folders = [words[words.index("-k") + 1] for words in _shown() if words[:1] == ["kubectl"] and "-k" in words]
    assert folders
    assert all((ROOT / folder / "kustomization.yaml").is_file() for folder in folders)
