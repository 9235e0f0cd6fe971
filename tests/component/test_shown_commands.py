"""The commands that README.md and the pages of docs show: those that need no cluster run, the others are well-formed.

A block `console` has one command, and after it what the command prints, as far as the page shows it.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from webhook import cli

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "README.md"
PAGES: Final = (README, *sorted(ROOT.glob("docs/**/*.md")))
_BLOCK: Final = re.compile(r"^ *```sh\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_CONSOLE: Final = re.compile(r"^```console\n\$ (.*?)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PROGRAM: Final = "kubevirt-coschedule"
_MAKE: Final = {"make demo": ["demo"]}  # what the target runs; `make venv` is how these tests themselves came to run
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z")
_FILES: Final = re.compile(r"--manifests manifests/")


def _shown(*pages: Path) -> Iterator[list[str]]:
    """The words of each line of these pages; of a pipe each part."""
    for page in pages:
        text = page.read_text(encoding="utf-8")
        blocks = [*_BLOCK.findall(text), *(command for command, _ in _CONSOLE.findall(text))]
        for line in "\n".join(blocks).replace("\\\n", "").splitlines():
            words = shlex.shlex(line, posix=True, punctuation_chars=True)
            words.whitespace_split = True
            part: list[str] = []
            for word in words:
                if set(word) <= set("|&;<>"):
                    yield part
                    part = []
                else:
                    part.append(word)
            yield part


def _ours(*pages: Path) -> list[list[str]]:
    lines = list(_shown(*pages))
    made = [_MAKE[" ".join(words)] for words in lines if " ".join(words) in _MAKE]
    return made + [words[1:] for words in lines if words[:1] == [_PROGRAM]]


def _printed() -> Iterator[tuple[str, str]]:
    """The commands of `console` blocks that need no cluster, and what the page shows of what each prints."""
    for page in PAGES:
        for command, output in _CONSOLE.findall(page.read_text(encoding="utf-8")):
            if command.startswith(_PROGRAM) and _FILES.search(command):
                yield command, output


@pytest.mark.parametrize(
    "words", [each for each in _ours(README) if each == ["demo"] or "--manifests" in each], ids=" ".join
)
def test_a_command_that_needs_no_cluster_runs(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """From the top of a clone. `status` exits with 1: of the example cluster one VM is apart, and one is stuck."""
    monkeypatch.chdir(ROOT)
    assert cli.main(words) == (1 if words[0] == "status" else 0)


@pytest.mark.parametrize(("command", "output"), list(_printed()))
def test_a_command_prints_what_the_page_shows(
    command: str, output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line that the page shows, in this order."""
    monkeypatch.chdir(ROOT)
    cli.main(shlex.split(command)[1:])
    lines = iter(capsys.readouterr().out.splitlines())
    assert [each for each in output.splitlines() if each not in lines] == []


def test_the_example_of_reunite_is_what_the_program_prints() -> None:
    """As the golden file has it of another VM at another time."""

    def refusal(text: str) -> str:
        said = next(line.partition("MovedAway: ")[2] for line in text.splitlines() if "MovedAway: " in line)
        return _TIME.sub("TIME", said).replace("db02 -n prod-vms", "moved -n vms")

    golden, page = ("tests/golden/reunite.txt", "docs/concepts/reunite.md")
    assert refusal((ROOT / page).read_text(encoding="utf-8")) == refusal((ROOT / golden).read_text(encoding="utf-8"))


@pytest.mark.parametrize("words", _ours(*PAGES), ids=" ".join)
def test_a_command_has_only_words_that_the_program_knows(words: list[str]) -> None:
    """The name of the command, its options and its arguments."""
    with cli.COMMANDS.commands[words[0]].make_context(words[0], words[1:]) as context:
        assert context.params is not None


def test_each_target_of_make_is_one_that_runs_here() -> None:
    """Another target needs a row in `_MAKE`, or a reason to stand beside `make venv`."""
    targets = {" ".join(words) for words in _shown(README) if words[:1] == ["make"]}
    assert targets == {*_MAKE, "make venv"}


@pytest.mark.parametrize(("installed", "installs"), [(".dev", False), (None, True)], ids=["after make venv", "first"])
def test_the_demo_installs_nothing_again(installed: str | None, *, installs: bool, tmp_path: Path) -> None:
    """A venv that has everything has what the demo needs, too."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "requirements-dev.lock"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    if installed:
        (tmp_path / ".venv").mkdir()
        (tmp_path / ".venv" / installed).touch()
    command = ["make", "--dry-run", "--silent", "demo"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)  # noqa: S603 - make
    assert ("Setting up" in done.stdout) is installs


def test_each_folder_that_kubectl_applies_exists() -> None:
    """It has a kustomization."""
    folders = [words[words.index("-k") + 1] for words in _shown(*PAGES) if words[:1] == ["kubectl"] and "-k" in words]
    assert folders
    assert all((ROOT / folder / "kustomization.yaml").is_file() for folder in folders)
