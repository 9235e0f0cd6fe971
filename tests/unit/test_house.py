"""What no tool checks: the size of modules, plain sentences, phrases that nobody writes here, subjects of commits.

`.ci/words.toml` has the limits, the phrases and the exceptions.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
WORDS: Final = tomllib.loads((ROOT / ".ci/words.toml").read_text(encoding="utf-8"))
FOLDERS: Final = ("webhook", "certs", "tests", "manifests", "charts", "docs", ".github")
PATTERNS: Final = ("*", ".ci/*", *(f"{folder}/**/*" for folder in FOLDERS))
READ: Final = {".py", ".md", ".yaml", ".yml", ".html", ".js", ".css", ".toml", "Dockerfile", "Makefile"}
OF_OTHERS: Final = {"tests/controlplane/crds.yaml", ".ci/words.toml", "tests/unit/test_house.py"}
SINCE: Final = "8a6cb2a557c373856a3ea30a2c995d159e70ee65"  # subjects of earlier commits are as they are
SUBJECT_CHARS: Final = 72  # git and GitHub cut longer ones

_SENTENCE_LIKE: Final = re.compile(r"[a-z]{2,}[,:]? [a-z]{2,}")  # two words in a row: no key and no path
_CODE_LIKE: Final = re.compile(r"[;{}]\s*\n|^\s*[\w-]+:( |$)|^\s*#", re.MULTILINE)  # JavaScript, YAML, a shell script
_DIRECTIVE: Final = re.compile(r"#\s*(noqa|type: ?ignore|pragma|fmt|ruff)\b[^-]*(- )?")  # for a tool, up to its reason
_NOT_PROSE: Final = re.compile(r"```.*?```|^\s*\|?[-:| ]+\|?$|<!--.*?-->|\]\([^)\s]*\)", re.DOTALL | re.MULTILINE)
_MARKED: Final = re.compile(r"``?[^`]*``?")
_BACK: Final = "\\1"  # refers to a group of its own row
_WORD: Final = re.compile(r"[^\W_][\w'/.@:-]*")
# Where a sentence ends: a full stop, a blank line, a heading, an item, an argument, a row or a cell of a table.
_END: Final = re.compile(
    r"\n\s*\n|\n#+ .*|\n\s*(?:[-*]|\d+\.)\s+|\n\s*\*{0,2}\w+(?: \([^)]*\))?:\s|(?<=\S)[ \t]{2,}(?=\S)|={3,}|(?<!\\)\|"
    r"|(?<!e\.g)(?<!i\.e)(?<!\betc)[.?!](?=[\s)\"*]|$)"
)


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def python_prose(text: str, *, of_tests: bool) -> Iterator[tuple[int, str, bool]]:
    """As `prose`: docstrings, messages, comments and the names of tests. A message in a test is data."""
    nodes = [*ast.walk(ast.parse(text))]
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test_"):
                yield node.lineno, name.replace("_", " "), False
            case ast.Constant(value=str(value)) if id(node) in docstrings:
                yield node.lineno, value, True
            case ast.Constant(value=str(value)) if _SENTENCE_LIKE.search(value) and not _CODE_LIKE.search(value):
                yield node.lineno, value, not of_tests
    comment, begins = "", 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            begins = begins or token.start[0]
            comment += _DIRECTIVE.sub("", token.string, count=1).lstrip("#! ") + "\n"
        elif comment and (token.type != tokenize.NL or not token.line.strip()):
            yield begins, comment, True
            comment, begins = "", 0


def prose(path: str, text: str) -> Iterator[tuple[int, str, bool]]:
    """(line, text, whether its sentences have a limit) of each text in a file that people read."""
    if path.endswith(".py"):
        yield from python_prose(text, of_tests=path.startswith("tests/"))
    else:
        yield 1, _NOT_PROSE.sub(_blank, text) if path.endswith(".md") else text, path.endswith(".md")


def faults(path: str, text: str, phrases: dict[str, str], most: int) -> Iterator[str]:
    """Yield a line for each sentence that is too long and each phrase of the list."""
    rows = [(_phrase(row), row, instead) for row, instead in phrases.items()]
    any_row = _phrase("|".join(row for row in phrases if _BACK not in row))
    for line, passage, limited in prose(path, text):
        start = 0
        flat = _MARKED.sub(lambda marked: "X" + _blank(marked), passage)
        for end in [*(found.end() for found in _END.finditer(flat)), len(flat)] if limited else ():
            if (words := len(_WORD.findall(flat[start:end]))) > most:
                at, sentence = line + flat.count("\n", 0, start), " ".join(flat[start:end].split())
                yield f"{path}:{at}: {words} words, at most {most}: write one thought a sentence: {sentence[:60]}..."
            start = end
        some = any_row.search(passage)
        for pattern, row, instead in rows:
            for found in pattern.finditer(passage) if some or _BACK in row else ():
                at = line + passage.count("\n", 0, found.start())
                yield f"{path}:{at}: got {' '.join(found[0].split())!r} ({row}), expected {instead}"


@cache
def _phrase(row: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{row})(?!\w)".replace(" ", r"[\s#]+"), re.IGNORECASE)


def _files() -> dict[str, str]:
    found = {
        path
        for pattern in PATTERNS
        for path in ROOT.glob(pattern)
        if path.is_file() and READ & {path.suffix, path.name}
    }
    named = {path.relative_to(ROOT).as_posix(): path for path in sorted(found) if "__pycache__" not in path.parts}
    return {name: path.read_text(encoding="utf-8") for name, path in named.items() if name not in OF_OTHERS}


@pytest.mark.slow
def test_each_text_is_plain() -> None:
    """Correct the sentence. A row of `.ci/words.toml` that is wrong in one place needs a narrower pattern."""
    limits, phrases = WORDS["limits"], WORDS["phrases"]
    found = [line for name, text in _files().items() for line in faults(name, text, phrases, limits["sentence_words"])]
    assert found == []


def test_each_module_has_one_subject() -> None:
    """Split it by subject; an exception says why it is none, and is needed."""
    most = WORDS["limits"]["module_lines"]
    long = {name for name, text in _files().items() if name.endswith(".py") and text.count("\n") > most}
    assert long == WORDS["long_modules"].keys()


def test_subjects_of_commits_are_short() -> None:
    """As far as the clone has them: amend the commit."""
    command = ["git", "-C", str(ROOT), "log", "--no-merges", "--format=%h %s", f"{SINCE}..HEAD"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603 - git
    except FileNotFoundError:
        said = ""
    subjects = [line.partition(" ") for line in said.splitlines()]
    assert [f"{commit} {subject}" for commit, _, subject in subjects if len(subject) > SUBJECT_CHARS] == []


SEVEN: Final = "One two three four five six seven"


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        pytest.param("webhook/a.py", f'"""First.\n\n{SEVEN}.\n"""', 3, id="docstring"),
        pytest.param("webhook/a.py", f"a = 1\n# {SEVEN[:13]}\n# {SEVEN[14:]}.", 2, id="comment of two lines"),
        pytest.param("webhook/a.py", f'print(f"Zero. {SEVEN} {{a}}")', 1, id="message"),
        pytest.param("README.md", f"# Head\n\n- Item.\n- Short. {SEVEN}?", 4, id="item"),
        pytest.param("README.md", f"|a|b|\n|---|---|\n|x|{SEVEN}|", 3, id="cell"),
        pytest.param("webhook/a.py", f'"""{SEVEN[:-6]}.\nSeven eight."""', None, id="two sentences"),
        pytest.param("webhook/a.py", f"a = 1  # noqa: A, B - {SEVEN[4:]}", None, id="a directive"),
        pytest.param("README.md", "One `two three four five six seven` eight.", None, id="code marks are one word"),
        pytest.param("README.md", f"One\n\nTwo\n```\n|{SEVEN}|\n{SEVEN}\n```", None, id="a block of code"),
        pytest.param("a.yaml", f"# {SEVEN}", None, id="a file of another language"),
        pytest.param("certs/a.py", '"""It is\nmade anew."""', 2, id="phrase in a docstring"),
        pytest.param("certs/a.py", "# all, but\n# for it", 1, id="phrase in two lines of comment"),
        pytest.param("tests/a.py", "def test_anew(): ...", 1, id="phrase in a test's name"),
        pytest.param("a.yaml", "a: 1\nb: made anew", 2, id="phrase in YAML"),
        pytest.param("README.md", "A new rebut forty", None, id="within words"),
    ],
)
def test_a_fault_is_found_in_its_line(path: str, text: str, line: int | None) -> None:
    """Six words are the limit of this test."""
    found = list(faults(path, text, {"anew": "again", "but for": "except for"}, 6))
    assert [each.split(":")[1] for each in found] == ([str(line)] if line else [])
