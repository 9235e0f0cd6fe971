"""The repository's own rules (.ci/house): each finds its fault, names the line, and leaves what is right alone."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import prose
import pytest
import repository
import structure
from repository import Repository, Source

ROOT = Path(__file__).parents[2]
WORDS: dict[str, Any] = {
    "limits": {"module_lines": 3, "folder_files": 2, "sentence_words": 6, "docstring_words": 2},
    "long_modules": {},
    "full_folders": {},
    "shared_names": {},
    "kept_names": {},
    "unread_prose": {},
    "names": {"crowds?": "snapshot", "Known": "CachedView", "short_list": "shortlist"},
    "program_names": {"^told$": "message"},
    "phrases": {"anew": "again", "but for": "except for", "(that|it) is no(?! longer)": "is not a"},
    "proselint": {"archaism": "for ever", "cliches": "on the spot"},
}
Rule = Callable[[Repository], Iterator[repository.Finding]]


def found(rule: Rule, files: dict[str, str], **words: Any) -> list[str]:
    """What a rule finds in these files. `words` replaces tables of words.toml."""
    sources = [Source(path, text) for path, text in files.items()]
    return [str(finding) for finding in rule(Repository(sources, list(files), {**WORDS, **words}))]


@pytest.mark.parametrize(
    ("path", "lines", "faulty"),
    [
        pytest.param("webhook/a.py", 3, False, id="as long as may be"),
        pytest.param("webhook/a.py", 4, True, id="longer"),
        pytest.param("tests/a.py", 4, True, id="a test"),
        pytest.param("README.md", 9, False, id="not a module"),
    ],
)
def test_a_module_has_a_limit_of_lines(path: str, lines: int, *, faulty: bool) -> None:
    """As `wc -l` counts them."""
    expected = [f"{path}:1: [long-module] {lines} lines, at most 3: split it by subject"] if faulty else []
    assert found(structure.long_modules, {path: "\n" * lines}) == expected


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        pytest.param(["webhook/__init__.py", "webhook/a.py", "webhook/b.css"], [], id="as many as may be"),
        pytest.param(["webhook/a.py", "webhook/x/b.py", "webhook/y/c.py"], [], id="in folders below"),
        pytest.param(["tests/a.py", "tests/b.py", "tests/c.py"], [], id="elsewhere"),
        pytest.param(
            ["certs/x/a.py", "certs/x/b.py", "certs/x/c.txt"],
            ["certs/x:1: [full-folder] 3 files, at most 2: divide it by subject"],
            id="too many",
        ),
    ],
)
def test_a_folder_of_the_programs_has_a_limit_of_files(paths: list[str], expected: list[str]) -> None:
    """Files of any kind count. __init__.py does not."""
    assert found(structure.full_folders, dict.fromkeys(paths, "")) == expected


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        pytest.param("def judge(): ...", "class judge: ...", "judge", id="function and class"),
        pytest.param("LIMIT: int = 1", "LIMIT = 2", "LIMIT", id="constants"),
        pytest.param("def judge(): ...", "from webhook.a import judge", None, id="an import"),
        pytest.param("def _judge(): ...", "def _judge(): ...", None, id="private"),
        pytest.param("def judge(): ...", "class A:\n    def judge(self): ...", None, id="a method"),
        pytest.param("def judge(): ...\ndef judge(): ...", "", None, id="twice in one module"),
    ],
)
def test_a_public_name_is_defined_in_one_module(first: str, second: str, shared: str | None) -> None:
    """The modules of both programs count, and no tests."""
    lines = found(structure.shared_names, {"webhook/a.py": first, "certs/b.py": f"\n{second}", "tests/c.py": first})
    what = f"webhook/a.py:1: [shared-name] {shared} is defined in certs/b.py:2 too, expected one place: "
    assert [line.startswith(what) for line in lines] == [True] * (shared is not None)


@pytest.mark.parametrize(
    ("path", "text", "got", "expected"),
    [
        pytest.param("webhook/a.py", "class CountedCrowd: ...", "CountedCrowd", "snapshot", id="class"),
        pytest.param("tests/a.py", "def a_crowd(): ...", "a_crowd", "snapshot", id="function"),
        pytest.param("certs/a.py", "def a(crowds): ...", "crowds", "snapshot", id="argument"),
        pytest.param("certs/a.py", "CROWD_SECONDS = 1", "CROWD_SECONDS", "snapshot", id="constant"),
        pytest.param("certs/a.py", "self._crowd = 1", "_crowd", "snapshot", id="attribute"),
        pytest.param("certs/crowd.py", "", "crowd", "snapshot", id="module"),
        pytest.param("certs/a.py", "ShortList = 1", "ShortList", "shortlist", id="two words"),
        pytest.param("certs/a.py", "class _Known: ...", "_Known", "CachedView", id="of a class only"),
        pytest.param("certs/a.py", "told = 1", "told", "message", id="whole name"),
        pytest.param("certs/a.py", "known = told_at = 1", None, "", id="neither class nor whole name"),
        pytest.param("certs/a.py", "crowded = shortlist = a.crowd", None, "", id="other words, and a use"),
        pytest.param("tests/a.py", "def test_no_crowd(): ...", None, "", id="a test's name is prose"),
        pytest.param("tests/a.py", "told = 1", None, "", id="a name for programs, in a test"),
        pytest.param("manifests/a.py", "crowd = 1", None, "", id="elsewhere"),
    ],
)
def test_a_name_has_none_of_the_forbidden_words(path: str, text: str, got: str | None, expected: str) -> None:
    """Words are found in any case. A capital in the list means classes and modules only."""
    line = f"{path}:1: [name] got {got}, expected {expected}: rename it"
    assert found(structure.forbidden_names, {path: text}) == ([line] if got else [])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        pytest.param('def a():\n    """Record."""', "Record.", id="a function's"),
        pytest.param('A = 1\n"""EFI."""', "EFI.", id="an attribute's"),
        pytest.param('def a():\n    """v1.Taint."""', "v1.Taint.", id="a name with a dot"),
        pytest.param('def a():\n    """A Secret."""', "A Secret.", id="an article, and one word"),
        pytest.param('def a():\n    """One record."""\n    return "Record."', None, id="two words, and a string"),
    ],
)
def test_a_docstring_has_more_than_one_word(text: str, word: str | None) -> None:
    """One word only repeats the name."""
    expected = [f"certs/a.py:2: [empty-docstring] got {word!r}, expected 2 words or more"] if word else []
    assert [line.rpartition(":")[0] for line in found(prose.empty_docstrings, {"certs/a.py": text})] == expected


SEVEN = "One two three four five six seven"


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        pytest.param("webhook/a.py", f'"""First.\n\n{SEVEN}.\n"""', 3, id="docstring"),
        pytest.param("webhook/a.py", f"a = 1\n# {SEVEN[:13]}\n# {SEVEN[14:]}.", 2, id="comment of two lines"),
        pytest.param("webhook/a.py", f'print(f"Zero. {SEVEN[:-6]} {{a}}")', 1, id="message"),
        pytest.param("README.md", f"# Head\n\n- Item.\n- Short. {SEVEN}?", 4, id="item"),
        pytest.param("README.md", f"|a|b|\n|---|---|\n|x|{SEVEN}|", 3, id="cell"),
        pytest.param("webhook/a.py", f'"""{SEVEN[:-6]}.\nSeven eight."""', None, id="two sentences"),
        pytest.param("webhook/a.py", '"""One two.\n\nArgs:\n    a: three four.\n    b: five."""', None, id="arguments"),
        pytest.param("webhook/a.py", '"""One two  three four  five six\nseven  eight"""', None, id="a table as text"),
        pytest.param("webhook/a.py", f"a = 1  # noqa: A, B - {SEVEN[4:]}", None, id="a directive"),
        pytest.param("README.md", "One `two three four five six seven` eight.", None, id="code marks are one word"),
        pytest.param("README.md", f"One\n\nTwo\n```\n|{SEVEN}|\n{SEVEN}\n```", None, id="a block of code"),
        pytest.param("a.yaml", f"# {SEVEN}", None, id="a file of another language"),
    ],
)
def test_a_sentence_has_a_limit_of_words(path: str, text: str, line: int | None) -> None:
    """The line is the one where the sentence begins."""
    what = f"{path}:{line}: [long-sentence] 7 words, at most 6: write one thought a sentence: One two"
    assert [each.startswith(what) for each in found(prose.long_sentences, {path: text})] == [True] * (line is not None)


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        pytest.param("certs/a.py", '"""It is\nmade anew."""', "2: 'anew' in a docstring, again", id="docstring"),
        pytest.param("certs/a.py", "# all, but\n# for it", "1: 'but for' in a comment, except for", id="two lines"),
        pytest.param("certs/a.py", 'a = "It was made Anew"', "1: 'Anew' in a message, again", id="message"),
        pytest.param("tests/a.py", "def test_anew(): ...", "1: 'anew' in a name, again", id="a test's name"),
        pytest.param("a.yaml", "a: 1\nb: made anew", "2: 'anew' in a file, again", id="YAML"),
        pytest.param("README.md", "`x`, that is no pod", "1: 'that is no' in a Markdown, is not a", id="Markdown"),
        pytest.param("README.md", "It is no longer so", None, id="excepted by the pattern"),
        pytest.param("README.md", "A new rebut forty", None, id="within words"),
        pytest.param("certs/a.py", 'a = "anew"\nanew = 1', None, id="neither message nor comment"),
    ],
)
def test_no_text_has_a_forbidden_phrase(path: str, text: str, expected: str | None) -> None:
    """A space of the list matches a line break, and the mark of a comment. A file can be excepted."""
    assert found(prose.phrases, {path: text}, unread_prose={path: "a reason"}) == []
    lines = found(prose.phrases, {path: text})
    plain = [line.replace("[phrase] got ", "").replace(" expected", "") for line in lines]
    assert plain == ([f"{path}:{expected}: rewrite the sentence"] if expected else [])


def test_proselint_reads_every_passage() -> None:
    """Its finding has the line of the passage. Checks that are not chosen are silent."""
    text = '"""A "very" good one."""\n# Short.\na = 1\n# It waits\n# for ever.\n'
    expected = "certs/a.py:5: [proselint] 'for ever' is archaic. (archaism): rewrite the sentence"
    assert found(prose.proselint_checks, {"README.md": "Fine.", "certs/a.py": text}) == [expected]


LONG, FULL = {"tests/a.py": "\n" * 4}, dict.fromkeys(("certs/a", "certs/b", "certs/c"), "")
SHARED, KEPT = {"webhook/a.py": "A = 1", "certs/a.py": "A = 1"}, {"webhook/a.py": "CROWD = 1"}


@pytest.mark.parametrize(
    ("rule", "table", "key", "files"),
    [
        pytest.param(structure.long_modules, "long_modules", "tests/a.py", LONG, id="module"),
        pytest.param(structure.full_folders, "full_folders", "certs", FULL, id="folder"),
        pytest.param(structure.shared_names, "shared_names", "A", SHARED, id="shared name"),
        pytest.param(structure.forbidden_names, "kept_names", "CROWD", KEPT, id="kept name"),
    ],
)
def test_an_exception_is_used_or_it_is_a_finding(rule: Rule, table: str, key: str, files: dict[str, str]) -> None:
    """Who corrects the fault removes its exception."""
    assert len(found(rule, files)) == 1
    assert found(rule, files, **{table: {key: "a reason"}}) == []
    stale = f".ci/house/words.toml:1: [stale] [{table}] {key!r} excepts nothing any more: remove the row"
    assert found(rule, {}, **{table: {key: "a reason"}}) == [stale]


@pytest.mark.parametrize(
    "sample",
    [
        "counted until it is seen; or was not.",
        "never a short one of one",
        "it is no pod that starts alone",
        "it has nothing to lose: above all one that we have pinned a moment ago",
        "the share-manager of a stopped VM anew",
    ],
)
def test_the_list_has_the_samples_of_the_first_review(sample: str) -> None:
    """Each is found by words.toml as it is."""
    assert found(prose.phrases, {"README.md": sample}, phrases=repository.load(ROOT).words["phrases"])


def test_the_list_has_the_names_of_the_first_review() -> None:
    """ShareManager is Longhorn's own name, and stays."""
    names = "Crowd Gathering Attendant Newcomer Applicant Tally Rulings Pace Known News Heard ShareManager"
    text = "\n".join(f"class {name}: ..." for name in names.split())
    lines = found(structure.forbidden_names, {"webhook/a.py": text}, names=repository.load(ROOT).words["names"])
    assert [int(line.split(":")[1]) for line in lines] == list(range(1, 12))


def test_each_row_of_the_list_has_its_text() -> None:
    """The reason of an exception, or what to write instead."""
    words = repository.load(ROOT).words
    assert words.keys() == WORDS.keys()
    assert [key for table, rows in words.items() for key, text in rows.items() if not text] == []


def test_the_program_reads_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a finding, in order, then the counts. It exits with 1 where the given paths have one."""
    main = runpy.run_path(str(ROOT / ".ci/house/__main__.py"))["main"]
    tables = "\n".join(f"[{table}]\n" for table in WORDS).replace("[phrases]", '[phrases]\nanew = "again"')
    limits = "\n".join(f"{key} = {value}" for key, value in WORDS["limits"].items())
    files = {".ci/house/words.toml": tables.replace("[limits]", f"[limits]\n{limits}"), "README.md": "Made anew."}
    for path, text in {**files, "webhook/a.py": '"""Anew."""', "webhook/__pycache__/b.py": "!"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert main([], tmp_path) == 1
    *lines, counts = capsys.readouterr().out.splitlines()
    places = ["README.md:1: [phrase", "webhook/a.py:1: [empty-docstring", "webhook/a.py:1: [phrase"]
    assert [line.partition("]")[0] for line in lines] == places
    assert counts == "3 findings: empty-docstring 1, phrase 2"
    assert main(["certs/"], tmp_path) == 0
